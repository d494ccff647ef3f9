"""Batches for operators: the list, the page, and the act on them, by page, by command and over the API."""

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import reverse

from a2a.batches import BatchInput, ExecuteBatch
from tasks_app.admin import batches as pages
from tasks_app.batches.rows import attach, take_turns
from tasks_app.models import Act, Batch, BatchItem, Principal, Task
from tasks_app.operations.batch_acts import cancel
from tasks_app.operations.batch_steps import advance
from tasks_app.operators.audit import Operator
from tasks_app.operators.refusals import ActRefused
from tasks_app.operators.roles import AGENT_OWNER, OPERATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tests.conftest import Person
from tests.operations.asking import ask, message, shown
from tests.operators.people import program
from tests.support.commands import printed, run
from tests.support.operators import NOW
from tests.transports.admin.pages import act, listed, messages_of

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
ERROR = '{"reason": "TASK_NOT_FOUND", "message": "<i>not found</i>"}'


def execute(who: Person, *words: str) -> Batch:
    items = tuple(BatchInput(message=message(word)) for word in words)
    return Batch.objects.get(pk=shown(ask(who, ExecuteBatch(operation="form-coroutine", items=items))).id)


@pytest.fixture
def batch(owner: Person) -> Batch:
    """Return a batch whose first item has a task, and whose second has failed to become one."""
    row = execute(owner, "one", "two", "three")
    task = Task.objects.get(pk=execute(owner, "other").pk)
    attach(row.pk, {0: task.pk}, {1: ERROR})
    Batch.objects.filter(pk=task.pk).delete()
    return row


def test_the_list_and_the_page_show_items_with_their_tasks(
    viewer: Client, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert listed(viewer, "batch") == [batch.pk]
    path = reverse("admin:tasks_app_batch_change", args=[batch.pk])
    page = viewer.get(path).content.decode()
    task_id = BatchItem.objects.get(batch=batch, place=0).task_id
    assert reverse("admin:tasks_app_task_change", args=[task_id]) in page
    assert "&lt;i&gt;not found" in page
    assert "<i>not found" not in page
    assert all(words in page for words in ("Working", "form-coroutine", "3 (2 open, 1 failed)", "owner (home)"))
    monkeypatch.setattr(pages, "ITEMS", 2)
    assert "?after=2" in viewer.get(path).content.decode()
    rest = viewer.get(path, {"after": "2"})
    assert [item["place"] for item in rest.context["items"]] == [2]
    assert "First items" in rest.content.decode()
    assert viewer.post(reverse("admin:tasks_app_batch_changelist"), {"action": "cancel"}).status_code == 403


def test_batches_are_found_by_state_owner_and_time(admin: Client, batch: Batch, stranger: Person) -> None:
    other = execute(stranger, "of another")
    cancel(other.pk, Operator("ada", "admin"))
    assert listed(admin, "batch", state="working") == [batch.pk]
    assert listed(admin, "batch", state="canceled") == [other.pk]
    assert listed(admin, "batch", state="completed") == []
    assert listed(admin, "batch", owner_id=str(stranger.caller.owner_id)) == [other.pk]
    assert listed(admin, "batch", owner_id="x") == []
    assert listed(admin, "batch", created="hour") == [other.pk, batch.pk]
    robot = program(VIEWER)
    for query, row in (
        ("state=working", batch),
        ("state=canceled", other),
        ("owner=home/owner", batch),
        ("owner=stranger&state=canceled", other),
        ("since=2026-01-01T00:00:00Z&owner=owner", batch),
    ):
        assert [each["id"] for each in robot.get(f"batches/?{query}").json()["results"]] == [row.pk], query
    assert robot.get("batches/?until=2026-01-01T00:00:00Z").json()["results"] == []
    assert robot.get("batches/?state=unknown").status_code == 400
    for words, row in (
        (("--state", "canceled"), other),
        (("--owner", "home/owner"), batch),
        (("--owner", "stranger", "--since", "1d"), other),
    ):
        assert [line["id"] for line in printed("a2a", "batches", "list", *words)] == [row.pk], words


def test_an_operator_cancels_a_batch_and_the_keeper_its_items(admin: Client, batch: Batch) -> None:
    assert messages_of(act(admin, "batch", "cancel", batch.pk)) == ["Canceled: 1 batch."]
    assert Task.objects.get(pk=batch.pk).state == "canceled"
    kinds = Act.objects.filter(verb="cancel", object_id=batch.pk).values_list("kind", "operator")
    assert sorted(kinds) == [("batch", "ada"), ("task", "ada")]
    Batch.objects.filter(pk=batch.pk).update(due_at="2000-01-01T00:00:00Z")
    (turn,) = take_turns(1, ())
    assert async_to_sync(advance)(turn) is None
    assert set(BatchItem.objects.filter(batch=batch).values_list("state", flat=True)) == {"canceled", "failed"}
    assert messages_of(act(admin, "batch", "cancel", batch.pk)) == [f"{batch.pk}: It cannot be canceled: it is over."]


def test_the_commands_do_the_same(batch: Batch) -> None:
    (line,) = printed("a2a", "batches", "list", "--state", "working")
    assert (line["id"], line["owner"], line["tenant"], line["size"]) == (batch.pk, "owner", "home", 3)
    (first,) = printed("a2a", "batches", "show", batch.pk, "--limit", "2")
    assert first["counts"] == {"open": 2, "failed": 1}
    assert [item["place"] for item in first["items"]] == [0, 1]
    assert first["items"][1]["error"]["reason"] == "TASK_NOT_FOUND"
    (rest,) = printed("a2a", "batches", "show", batch.pk, "--after", str(first["after"]))
    assert ([item["place"] for item in rest["items"]], rest["after"]) == ([2], None)
    assert printed("a2a", "batches", "cancel", batch.pk) == [{"id": batch.pk, "done": "cancel"}]
    failed = run("a2a", "batches", "cancel", batch.pk, "missing")
    assert (failed.code, [set(line) for line in failed.lines]) == (1, [{"id", "refused"}] * 2)
    assert run("a2a", "batches", "show", "missing").code == 1


def test_the_api_does_the_same_within_the_reach_of_its_operator(batch: Batch) -> None:
    robot, elsewhere = program(OPERATOR), program(OPERATOR, reach=NamedReach(tenants=()))
    path = f"batches/{batch.pk}/"
    page = robot.get(path, limit=2).json()
    assert (page["state"], len(page["items"])) == ("working", 2)
    assert page["next"].endswith("after=2") or "after=2" in page["next"]
    assert [item["place"] for item in robot.get(path, after=2).json()["items"]] == [2]
    assert robot.get(path, before=2).status_code == 400
    assert elsewhere.get("batches/").json()["results"] == []
    assert elsewhere.post(f"{path}cancel/").status_code == 404
    assert program(VIEWER).post(f"{path}cancel/").status_code == 403
    assert robot.post(f"{path}cancel/", reason="a duplicate").json()["state"] == "canceled"
    assert Act.objects.get(kind="batch").reason == "a duplicate"
    assert robot.post(f"{path}cancel/").status_code == 409


def test_an_agent_owner_sees_the_batches_of_the_agent(batch: Batch) -> None:
    own = program(AGENT_OWNER, reach=NamedReach(all_tenants=True, agents=["form-coroutine"]))
    other = program(AGENT_OWNER, reach=NamedReach(all_tenants=True, agents=["echo"]))
    assert [row["id"] for row in own.get("batches/").json()["results"]] == [batch.pk]
    assert other.get("batches/").json()["results"] == []
    assert other.post(f"batches/{batch.pk}/cancel/").status_code == 404
    assert own.post(f"batches/{batch.pk}/cancel/").status_code == 200


def test_a_batch_whose_task_is_gone_is_shown_and_not_canceled(admin: Client, olga: Principal) -> None:
    numbers = dict.fromkeys(("size", "max_concurrent", "batch_size"), 1)
    row = Batch.objects.create(id="gone", tenant=olga.tenant, owner=olga, agent="a", created_at=NOW, **numbers)
    assert listed(admin, "batch") == [row.pk]
    assert "Its task is gone" in admin.get(reverse("admin:tasks_app_batch_change", args=[row.pk])).content.decode()
    for id in (row.pk, "a\0b", "missing"):
        with pytest.raises(ActRefused):
            cancel(id, Operator("ada", "admin"))
    assert not Act.objects.exists()
