"""Shared streams for operators: the list, the page, and the acts on them, by page, by command and over the API."""

import pytest
from django.test import Client
from django.urls import reverse

from a2a.requests import SendToSharedStream, StartSharedStream
from a2a.shared_streams import ChunkRole
from a2a.types import Part
from tasks_app.models import Act, Chunk, SharedStream
from tasks_app.operators.roles import OPERATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tests.conftest import Person
from tests.operations.asking import ask
from tests.operators.people import program
from tests.support.commands import printed, run
from tests.transports.admin.pages import act, listed, messages_of

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


@pytest.fixture
def stream(owner: Person) -> SharedStream:
    id = ask(owner, StartSharedStream(participants=("echo",), metadata={"topic": "<b>"})).id
    parts = (Part(text="<i>hello</i>"), Part(data={"n": 1}))
    ask(owner, SendToSharedStream(stream_id=id, parts=parts, role=ChunkRole.USER))
    return SharedStream.objects.get(pk=id)


def test_the_list_and_the_page_show_participants_and_chunks(viewer: Client, stream: SharedStream) -> None:
    assert listed(viewer, "sharedstream") == [stream.pk]
    page = viewer.get(reverse("admin:tasks_app_sharedstream_change", args=[stream.pk])).content.decode()
    assert "&lt;i&gt;hello&lt;/i&gt;" in page
    assert "<i>hello" not in page
    assert all(word in page for word in ("<bdi>echo</bdi> (agent)", "<bdi>owner</bdi> (account)", "Active"))
    assert viewer.post(reverse("admin:tasks_app_sharedstream_changelist"), {"action": "close"}).status_code == 403


def test_an_operator_pauses_resumes_and_closes_in_the_admin(admin: Client, stream: SharedStream) -> None:
    for verb, word, state in (
        ("pause", "Paused", "paused"),
        ("resume", "Resumed", "active"),
        ("close", "Closed", "closed"),
    ):
        assert messages_of(act(admin, "sharedstream", verb, stream.pk)) == [f"{word}: 1 shared stream."]
        stream.refresh_from_db()
        assert stream.state == state
    again = messages_of(act(admin, "sharedstream", "close", stream.pk))
    assert again == [f"{stream.pk}: It cannot be done: it is closed."]
    acts = Act.objects.order_by("id").values_list("verb", "operator", "kind", "object_id")
    assert list(acts) == [(verb, "ada", "shared stream", stream.pk) for verb in ("pause", "resume", "close")]
    assert Chunk.objects.filter(stream=stream, author="operator:ada", role="system").count() == 3


def test_the_commands_do_the_same(stream: SharedStream) -> None:
    (line,) = printed("a2a", "shared-streams", "list", "--state", "active")
    assert (line["id"], line["owner"], line["tenant"], line["last_seq"]) == (stream.pk, "owner", "home", 1)
    (shown,) = printed("a2a", "shared-streams", "show", stream.pk)
    assert shown["participants"] == [{"name": "owner", "kind": "account"}, {"name": "echo", "kind": "agent"}]
    assert shown["chunks"][0]["parts"] == [{"text": "<i>hello</i>"}, {"data": {"n": 1}}]
    closing = printed("a2a", "shared-streams", "close", stream.pk, "--reason", "it is late")
    assert closing == [{"id": stream.pk, "done": "close"}]
    assert printed("a2a", "shared-streams", "list", "--state", "active") == []
    assert SharedStream.objects.get().reason == "it is late"
    failed = run("a2a", "shared-streams", "pause", stream.pk, "missing")
    assert (failed.code, [set(line) for line in failed.lines]) == (1, [{"id", "refused"}] * 2)
    assert run("a2a", "shared-streams", "show", "missing").code == 1


def test_the_api_does_the_same_within_the_reach_of_its_operator(stream: SharedStream) -> None:
    robot, elsewhere = program(OPERATOR), program(OPERATOR, reach=NamedReach(tenants=()))
    (row,) = robot.get("shared-streams/?state=active").json()["results"]
    assert (row["id"], row["owner"], row["size"]) == (stream.pk, "owner", stream.size)
    assert robot.get(f"shared-streams/{stream.pk}/").json()["chunks"][0]["author"] == "owner"
    assert elsewhere.get("shared-streams/").json()["results"] == []
    assert elsewhere.post(f"shared-streams/{stream.pk}/close/").status_code == 404
    assert program(VIEWER).post(f"shared-streams/{stream.pk}/close/").status_code == 403
    assert robot.post(f"shared-streams/{stream.pk}/pause/").json()["state"] == "paused"
    assert robot.post(f"shared-streams/{stream.pk}/resume/").json()["state"] == "active"
    assert robot.post(f"shared-streams/{stream.pk}/close/").json()["state"] == "closed"
    assert robot.post(f"shared-streams/{stream.pk}/close/").status_code == 409


def test_chunks_come_in_pages_by_page_by_command_and_over_the_api(
    viewer: Client, stream: SharedStream, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.admin.shared_streams.CHUNKS", 2)
    for number in range(2, 6):
        parts = (Part(text=f"chunk number {number}"),)
        ask(owner, SendToSharedStream(stream_id=stream.pk, parts=parts, role=ChunkRole.USER))
    place = reverse("admin:tasks_app_sharedstream_change", args=[stream.pk])
    newest, older = viewer.get(place).content.decode(), viewer.get(f"{place}?before=4").content.decode()
    words = ("chunk number 5", "chunk number 3", "?before=4", "?before=2", "Newest chunks")
    assert [word in newest for word in words] == [True, False, True, False, False]
    assert [word in older for word in words] == [False, True, False, True, True]
    assert viewer.get(f"{place}?before=nonsense").status_code == 200
    (shown,) = printed("a2a", "shared-streams", "show", stream.pk, "--before", "5", "--limit", "3")
    assert ([chunk["seq"] for chunk in shown["chunks"]], shown["before"]) == ([2, 3, 4], 2)
    robot, numbers, place = program(OPERATOR), list[int](), f"shared-streams/{stream.pk}/?limit=2"
    while place:
        page = robot.get(place).json()
        numbers = [chunk["seq"] for chunk in page["chunks"]] + numbers
        place = page["next"].partition("/api/v1/")[2] if page["next"] else ""
    assert numbers == [1, 2, 3, 4, 5]
    for query in ("before=x", "limit=0", "limit=501", "after=1", "before=" + 99 * "9"):
        assert robot.get(f"shared-streams/{stream.pk}/?{query}").status_code == 400
