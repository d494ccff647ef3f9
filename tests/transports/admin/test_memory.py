"""The memory for operators: the list, the page, and the act on it, by page, by command and over the API."""

import io
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from tasks_app import clock
from tasks_app.models import Act, MemoryEntry, MemoryUse
from tasks_app.operations.memory_acts import remove
from tasks_app.operators.audit import Operator
from tasks_app.operators.roles import AUDITOR, OPERATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tests.conftest import Person
from tests.operations.remembering import keys, put
from tests.operators.people import program
from tests.support.commands import printed, run
from tests.transports.admin.pages import act, listed, messages_of

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def entry(owner: Person) -> MemoryEntry:
    put(owner, "<b>plan", {"words": "<i>done</i>", "api_key": "k-123", "note": f"with {SECRET}"}, ttl=3600)
    return MemoryEntry.objects.get()


def test_the_list_has_no_values_and_the_page_masks_secrets(viewer: Client, entry: MemoryEntry) -> None:
    listing = viewer.get(reverse("admin:tasks_app_memoryentry_changelist")).content.decode()
    assert "&lt;b&gt;plan" in listing
    page = viewer.get(reverse("admin:tasks_app_memoryentry_change", args=[entry.pk])).content.decode()
    assert "&lt;i&gt;done&lt;/i&gt;" in page
    assert "[redacted]" in page
    for text in ("<i>done", "<b>plan", "k-123", SECRET):
        assert text not in page + listing, text
    assert "done" not in listing
    assert "1 with 100 B" in page or f"1 with {entry.size} B" in page
    assert viewer.post(reverse("admin:tasks_app_memoryentry_changelist"), {"action": "remove"}).status_code == 403
    assert viewer.get(reverse("admin:tasks_app_memoryentry_change", args=["x"])).status_code == 302


def test_entries_are_found_by_owner_namespace_key_and_expiry(
    admin: Client, entry: MemoryEntry, stranger: Person
) -> None:
    put(stranger, "other", 1, namespace="apart")
    other = MemoryEntry.objects.get(key="other")
    past = MemoryEntry.objects.create(
        **{
            field.name: getattr(other, field.name)
            for field in MemoryEntry._meta.concrete_fields
            if field.name not in ("id", "key", "expires_at")
        },
        key="past",
        expires_at=clock.now() - timedelta(hours=1),
    )
    assert listed(admin, "memoryentry", namespace="apart") == [past.pk, other.pk]
    assert listed(admin, "memoryentry", q="other") == [other.pk]
    assert listed(admin, "memoryentry", q="oth") == []
    assert listed(admin, "memoryentry", owner_id=str(entry.owner_id)) == [entry.pk]
    assert listed(admin, "memoryentry", expires="over") == [past.pk]
    assert listed(admin, "memoryentry", expires="day") == [past.pk, entry.pk]
    robot = program(VIEWER)
    later = (clock.now() + timedelta(minutes=30)).isoformat().replace("+00:00", "Z")
    for query, rows in (
        ({"namespace": "apart", "key": "other"}, [other]),
        ({"owner": "home/owner"}, [entry]),
        ({"owner": "stranger", "key": "past"}, [past]),
        ({"until": later}, [past]),
        ({"since": later}, [entry]),
    ):
        assert [each["id"] for each in robot.get("memory/", **query).json()["results"]] == [row.pk for row in rows]
    for words, rows in (
        (("--namespace", "apart", "--key", "other"), [other]),
        (("--owner", "home/owner"), [entry]),
        (("--owner", "nobody"), []),
    ):
        assert [line["id"] for line in printed("a2a", "memory", "list", *words)] == [row.pk for row in rows]


def test_an_operator_removes_entries_and_gives_their_owner_room(
    admin: Client, entry: MemoryEntry, owner: Person
) -> None:
    put(owner, "stays", 1)
    assert messages_of(act(admin, "memoryentry", "remove", str(entry.pk))) == ["Remove: 1 memory entry."]
    assert keys(owner) == ["stays"]
    use = MemoryUse.objects.get(pk=entry.owner_id)
    assert (use.entries, use.size) == (1, 1)
    row = Act.objects.get()
    assert (row.verb, row.kind, row.object_id, row.operator) == ("remove", "memory entry", str(entry.pk), "ada")
    assert (row.before, row.tenant_id) == (f'{{"version":1,"size":{entry.size}}}', entry.tenant_id)
    assert not remove(entry, Operator("ada", "admin"))
    assert Act.objects.count() == 1


def test_the_commands_do_the_same(entry: MemoryEntry) -> None:
    (line,) = printed("a2a", "memory", "list", "--namespace", "sparc")
    assert (line["owner"], line["tenant"], line["key"], line["size"]) == ("owner", "home", "<b>plan", entry.size)
    assert "data" not in line
    (shown,) = printed("a2a", "memory", "show", str(entry.pk))
    assert shown["data"] == {"words": "<i>done</i>", "api_key": "[redacted]", "note": "with [redacted]"}
    assert (shown["owner_entries"], shown["owner_bytes"]) == (1, entry.size)
    assert printed("a2a", "memory", "remove", str(entry.pk)) == [{"id": entry.pk, "done": "remove"}]
    failed = run("a2a", "memory", "remove", str(entry.pk))
    assert (failed.code, set(failed.lines[0])) == (1, {"id", "refused"})
    assert run("a2a", "memory", "show", str(entry.pk)).code == 1


def test_the_command_takes_any_id_and_reads_ids_from_its_input(
    entry: MemoryEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = 2**40
    MemoryEntry.objects.filter(pk=entry.pk).update(id=large)
    (shown,) = printed("a2a", "memory", "show", str(large))
    assert shown["id"] == large
    assert "An id must be a number" in run("a2a", "memory", "remove", "plan").errors
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{large}\n1\n{large}\n"))
    removed = run("a2a", "memory", "remove", "-")
    assert removed.lines == [{"id": large, "done": "remove"}, {"id": 1, "refused": "There is no such entry."}]
    assert "1 of 2 refused." in removed.errors


def test_the_api_does_the_same_within_the_reach_of_its_operator(entry: MemoryEntry) -> None:
    robot, path = program(OPERATOR), f"memory/{entry.pk}/"
    (row,) = robot.get("memory/").json()["results"]
    assert (row["key"], row["owner"]) == ("<b>plan", "owner")
    assert "data" not in row
    shown = program(AUDITOR).get(path).json()
    assert shown["data"]["api_key"] == "[redacted]"
    for reach in (NamedReach(tenants=()), NamedReach(all_tenants=True, agents=["echo"])):
        elsewhere = program(OPERATOR, reach=reach)
        assert elsewhere.get("memory/").json()["results"] == []
        assert elsewhere.post(f"{path}remove/").status_code == 404
    assert program(VIEWER).post(f"{path}remove/").status_code == 403
    assert robot.post(f"{path}remove/", reason="asked for").json()["key"] == "<b>plan"
    assert Act.objects.get(kind="memory entry").reason == "asked for"
    assert robot.post(f"{path}remove/").status_code == 404
