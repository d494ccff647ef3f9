"""The task methods of ACP: tasks as they are created, continued, read and canceled."""

from base64 import b64encode
from typing import Any

import orjson
import pytest

from tasks_app.exchanges.recording import recorder
from tasks_app.exchanges.responses import response_text
from tasks_app.models import Exchange
from tests.acp.calls import call, create, error_of, post, said, settled, stream, task_of
from tests.conftest import PATIENCE, Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]


def recorded_all() -> list[Exchange]:
    assert recorder.drain(PATIENCE)
    return list(Exchange.objects.order_by("id"))


@pytest.mark.requirement("ACP-06", "ACP-09")
@pytest.mark.parametrize("agent", ["form-function", "quick-function", "replies"])
def test_a_created_task_is_submitted_whatever_its_agent_does(owner: Person, agent: str) -> None:
    task = create(owner.key, agent)
    assert set(task) == {
        *("taskId", "status", "createdAt", "updatedAt", "assignedAgent", "messages", "artifacts", "metadata")
    }
    assert (task["status"], task["assignedAgent"], task["artifacts"]) == ("SUBMITTED", agent, [])
    ((message),) = task["messages"]
    assert message == said(timestamp=message["timestamp"])
    assert message["timestamp"][:19] == task["createdAt"][:19]
    done = settled(owner.key, task["taskId"], "COMPLETED")
    assert (done["createdAt"], done["assignedAgent"]) == (task["createdAt"], agent)
    assert done["updatedAt"] >= task["updatedAt"]
    if agent == "replies":
        reply = done["messages"][1]
        assert reply["parts"] == [{"type": "TextPart", "content": "You said hello", "mimeType": "text/plain"}]
        assert (reply["role"], reply["agentId"]) == ("agent", "replies")
        return
    (artifact,) = done["artifacts"]
    assert artifact["parts"] == [{"type": "TextPart", "content": "hello", "mimeType": "text/plain"}]
    assert (artifact["createdBy"], artifact["name"]) == (agent, artifact["name"])


@pytest.mark.requirement("ACP-22")
@pytest.mark.parametrize(
    ("agent", "status", "metadata"),
    [
        ("asks", "INPUT_REQUIRED", {}),
        ("asks-credentials", "INPUT_REQUIRED", {"waitingFor": "authorization"}),
        ("rejects", "FAILED", {"reason": "rejected"}),
        ("raises", "FAILED", {}),
        ("form-function", "COMPLETED", {}),
    ],
)
def test_each_state_is_one_of_six(owner: Person, agent: str, status: str, metadata: Any) -> None:
    task = settled(owner.key, create(owner.key, agent)["taskId"], status)
    assert task["metadata"] == {"agent": agent} | metadata


def test_a_task_goes_on_with_the_next_message(owner: Person) -> None:
    task = settled(owner.key, create(owner.key, "asks")["taskId"], "INPUT_REQUIRED")
    assert [message["role"] for message in task["messages"]] == ["user", "agent"]
    assert task["messages"][1]["parts"][0]["content"] == "Which one?"
    again = task_of("tasks.send", {"taskId": task["taskId"], "message": said()}, owner.key)
    assert again["status"] in {"SUBMITTED", "WORKING", "COMPLETED"}
    done = settled(owner.key, task["taskId"], "COMPLETED")
    assert [message["role"] for message in done["messages"]] == ["user", "agent", "user"]
    assert done["artifacts"][0]["parts"][0]["content"] == "hello and hello"


PARTS = [
    {"type": "TextPart", "content": "# Summary", "mimeType": "text/markdown"},
    {"type": "DataPart", "content": {"rate": 0.23}, "mimeType": "application/json"},
    {"type": "FilePart", "content": b64encode(b"%PDF").decode(), "mimeType": "application/pdf", "filename": "r.pdf"},
    {"type": "ImagePart", "content": "iVBORw0KGgo=", "mimeType": "image/png", "width": 1024, "alt": "Trend"},
    {"type": "AudioPart", "content": "UklGRg==", "mimeType": "audio/wav", "duration": 45.2},
    {"type": "FilePart", "content": "iVBORw0KGgo=", "mimeType": "image/png"},
    {"type": "FilePart", "content": None, "reference": "https://files.example/a", "checksum": "sha256:ab"},
]


@pytest.mark.requirement("ACP-06")
def test_each_kind_of_part_comes_back_as_it_was_sent(owner: Person) -> None:
    message = said(*PARTS, role="system", timestamp="2024-01-15T10:30:00Z", agentId="agent-1")
    params = {"initialMessage": message, "metadata": {"agent": "files-in-a-thread"}}
    task = task_of("tasks.create", params, owner.key)
    (back,) = task["messages"]
    assert {name: back[name] for name in ("role", "timestamp", "agentId")} == {
        "role": "system",
        "timestamp": "2024-01-15T10:30:00Z",
        "agentId": "agent-1",
    }
    sizes = {2: 4, 3: 8, 4: 4, 5: 8}
    files = {place: {"encoding": "base64", "size": size} for place, size in sizes.items()}
    assert back["parts"] == [part | files.get(place, {}) for place, part in enumerate(PARTS)]


@pytest.mark.parametrize(
    ("encoding", "content", "expected"),
    [("utf8", "é", "é".encode()), ("binary", "é", b"\xe9"), (None, "6Q==", b"\xe9")],
)
def test_a_file_is_read_in_its_encoding(owner: Person, encoding: str | None, content: str, expected: bytes) -> None:
    part = {"type": "FilePart", "content": content} | ({"encoding": encoding} if encoding else {})
    task = task_of("tasks.create", {"initialMessage": said(part)}, owner.key)
    assert task["messages"][0]["parts"][0]["content"] == b64encode(expected).decode()


@pytest.mark.requirement("ACP-11")
@pytest.mark.parametrize(
    ("params", "field", "expected", "received"),
    [
        ({"taskId": 7}, "params.taskId", "taskId (string)", "taskId (integer)"),
        ({}, "params.taskId", "taskId (required)", "taskId (absent)"),
        ({"taskId": ""}, "params.taskId", "taskId (a non-empty string)", "taskId (another value)"),
        (
            {"taskId": "t", "message": said(role="boss")},
            "params.message.role",
            "role (one of user, agent, system)",
            "role (another value)",
        ),
        (
            {"taskId": "t", "message": said({"type": "FilePart", "content": "?"})},
            "params.message.parts[0].content",
            "content (base64)",
            "content (another value)",
        ),
        (
            {"taskId": "t", "message": said({"type": "TextPart"})},
            "params.message.parts[0].content",
            "content (required)",
            "content (absent)",
        ),
        (
            {"taskId": "t", "message": said({"type": "TextPart", "content": 7})},
            "params.message.parts[0].content",
            "content (a string)",
            "content (another value)",
        ),
        (
            {"taskId": "t", "message": said({"type": "VideoPart"})},
            "params.message.parts[0].type",
            "type (one of TextPart, DataPart, FilePart, ImagePart, AudioPart)",
            "type (another value)",
        ),
    ],
)
def test_a_wrong_field_is_named_with_what_was_expected(
    owner: Person, params: Any, field: str, expected: str, received: str
) -> None:
    method = "tasks.send" if "message" in params else "tasks.get"
    error = error_of(method, params, owner.key)
    assert (error["code"], error["message"]) == (-32602, "Invalid params")
    assert {name: error["data"][name] for name in ("field", "expected", "received")} == {
        "field": field,
        "expected": expected,
        "received": received,
    }


@pytest.mark.requirement("ACP-25")
def test_messages_and_artifacts_are_left_out_on_request(owner: Person) -> None:
    task = settled(owner.key, create(owner.key)["taskId"], "COMPLETED")
    for name, member in {"includeMessages": "messages", "includeArtifacts": "artifacts"}.items():
        short = task_of("tasks.get", {"taskId": task["taskId"], name: False}, owner.key)
        assert short == {key: value for key, value in task.items() if key != member}
        assert task_of("tasks.get", {"taskId": task["taskId"], name: True}, owner.key) == task


def test_a_recorded_answer_is_derived_as_it_was_sent(owner: Person) -> None:
    task = settled(owner.key, create(owner.key)["taskId"], "COMPLETED")
    before = len(recorded_all())
    answers = [
        post(call("tasks.get", {"taskId": task["taskId"]} | more), owner.key)[2]
        for more in ({}, {"includeMessages": False}, {"includeArtifacts": False})
    ]
    assert [orjson.loads(response_text(row)) for row in recorded_all()[before:]] == answers
    assert {row.dialect for row in recorded_all()} == {"acp"}


@pytest.mark.requirement("ACP-08")
@pytest.mark.parametrize("events", [None, ["NEW_ARTIFACT", "COMPLETED"]], ids=["default", "chosen"])
def test_operators_see_the_notifications_of_a_stream_as_they_were_sent(owner: Person, events: list[str] | None) -> None:
    task = settled(owner.key, create(owner.key)["taskId"], "COMPLETED")
    params = {"taskId": task["taskId"]} | ({"events": events} if events else {})
    before = len(recorded_all())
    frames = stream(call("tasks.subscribe", params), owner.key, after=1)
    assert [orjson.loads(frame).get("method") for frame in frames[:2]] == [None, "task.notification"]
    assert orjson.loads(frames[-1])["params"]["event"] == "COMPLETED"
    (row,) = recorded_all()[before:]
    assert (row.outcome, row.dialect, row.frames) == ("stream", "acp", len(frames))
    assert response_text(row).split("\n") == frames


@pytest.mark.requirement("ACP-22")
def test_a_canceled_task_is_canceled_again_and_an_ended_one_is_not(owner: Person) -> None:
    waiting = settled(owner.key, create(owner.key, "asks")["taskId"], "INPUT_REQUIRED")
    params = {"taskId": waiting["taskId"], "reason": "Requirements changed"}
    canceled = task_of("tasks.cancel", params, owner.key)
    assert canceled["status"] == "CANCELED"
    assert task_of("tasks.cancel", params, owner.key) == canceled
    for agent, status in (("form-function", "COMPLETED"), ("rejects", "FAILED")):
        task = settled(owner.key, create(owner.key, agent)["taskId"], status)
        for method, more in (("tasks.cancel", {}), ("tasks.send", {"message": said()})):
            error = error_of(method, {"taskId": task["taskId"]} | more, owner.key)
            assert (error["code"], error["message"]) == (-40002, "Task already completed")
            assert error["data"]["taskId"] == task["taskId"]


@pytest.mark.requirement("ACP-10", "ACP-12")
def test_a_missing_task_is_named_and_no_other(owner: Person, stranger: Person) -> None:
    task = create(owner.key)["taskId"]
    own = create(stranger.key)["taskId"]
    for missing in ("nonexistent-task", task):
        error = error_of("tasks.get", {"taskId": missing}, stranger.key)
        assert (error["code"], error["message"]) == (-40001, "Task not found")
        assert set(error["data"]) == {"suggestion", "reason", "taskId", "timestamp"}
        assert error["data"]["taskId"] == missing
        assert own not in str(error)


@pytest.mark.requirement("ACP-25")
def test_a_method_that_only_an_example_has_is_not_found(owner: Person) -> None:
    error = error_of("tasks.getBatch", {"taskIds": ["1", "2"]}, owner.key)
    assert (error["code"], error["message"]) == (-32601, "Method not found")
