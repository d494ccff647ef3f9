"""The wire of ACP, as recorded in tests/wire/acp.json: requests decode to these values, answers encode to this JSON.

To see what ACP looks like here, read that file; to change it on purpose, change the file.
"""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from a2a import errors
from a2a.answers import Answer
from a2a.dialects.acp.following import encode_notification, encode_push
from a2a.dialects.acp.language import LANGUAGE
from a2a.dialects.acp.streams import encode_chunk
from a2a.dialects.acp.values import MARK
from a2a.dialects.json.json_1_0 import document, event_document, task_of
from a2a.envelopes import Member, jsonrpc
from a2a.errors import Error
from a2a.events import ArtifactAdded, Event, MessageAdded, StatusChanged, TaskCreated
from a2a.notices import EVERYTHING, Notice, filter_of, with_notice
from a2a.requests import (
    CancelTask,
    CreatePushConfig,
    EndSharedStream,
    FollowTask,
    GetTask,
    NotifyOfTask,
    Request,
    SendChunk,
    SendMessage,
    SendToSharedStream,
    StartSharedStream,
)
from a2a.shared_streams import ChunkDocument, ChunkReceipt, ChunkRole, SharedStreamDocument, SharedStreamState
from a2a.states import TaskState
from a2a.types import Artifact, Message, Part, PushConfig, Role, Status, Task
from tests.conftest import ROOT

GOLDEN = json.loads((ROOT / "tests/wire/acp.json").read_text(encoding="utf-8"))
TASK = "0191e8f0-0000-7000-8000-000000000001"
MARKED = {"role": "agent", "timestamp": "2024-01-15T10:30:00Z", "agentId": "agent-analysis-001"}
TIME = "2026-11-23T01:55:12.631Z"


def said(*parts: Part, task: str | None = None, marked: Any = None) -> Message:
    metadata = {MARK: marked} if marked else None
    return Message(message_id="", role=Role.USER, parts=parts, task_id=task, metadata=metadata)


TEXT = Part(text="Analyze sales data")
DEFAULT = filter_of([Notice.STATUS_CHANGE, Notice.COMPLETED, Notice.FAILED])
REQUESTS: dict[str, Request] = {
    "tasks.create": SendMessage(
        message=said(TEXT), return_immediately=True, queued=True, metadata={"category": "analytics"}
    ),
    "tasks.create.parts": SendMessage(
        message=said(
            replace(TEXT, media_type="text/markdown"),
            Part(data={"rate": 0.23}, media_type="application/json"),
            Part(raw=b"%PDF", filename="r.pdf", media_type="application/pdf"),
            Part(raw=b"a,b\n", filename="data.csv", media_type="text/csv"),
            Part(raw=b"\x89PNG", media_type="image/png", metadata={MARK: {"width": 1024}}),
            Part(raw=b"RIFF", media_type="audio/wav", metadata={MARK: {"duration": 45.2}}),
            Part(url="s3://bucket/large.parquet", metadata={MARK: {"checksum": "sha256:ab"}}),
            marked=MARKED,
        ),
        return_immediately=True,
        queued=True,
    ),
    "tasks.send": SendMessage(message=said(TEXT, task=TASK), return_immediately=True),
    "tasks.get": GetTask(id=TASK),
    "tasks.get.status": GetTask(id=TASK, history_length=0, include_artifacts=False),
    "tasks.subscribe": CreatePushConfig(
        task_id=TASK, config=PushConfig(url="https://agent.example/hook", notices=DEFAULT, path="callbackUrl")
    ),
    "tasks.subscribe.events": CreatePushConfig(
        task_id=TASK,
        config=PushConfig(
            url="https://agent.example/hook",
            schemes=("standardwebhooks",),
            credentials="whsec_QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJC",
            notices=filter_of([Notice.NEW_ARTIFACT, Notice.NEW_MESSAGE]),
            path="callbackUrl",
        ),
    ),
    "task.notification": NotifyOfTask(remote_id="task-abc123"),
    "tasks.cancel": CancelTask(id=TASK, repeatable=True, metadata={"reason": "Requirements changed"}),
    "stream.start": StartSharedStream(participants=("analyst", "writer"), metadata={"purpose": "consultation"}),
    "stream.start.resume": StartSharedStream(stream_id=TASK, participants=("reviewer",)),
    "stream.message": SendToSharedStream(stream_id=TASK, parts=(TEXT,), role=ChunkRole.USER),
    "stream.chunk": SendChunk(stream_id=TASK, parts=(TEXT,), role=ChunkRole.AGENT, sequence=7, is_last=True),
    "stream.end": EndSharedStream(stream_id=TASK, reason="Done"),
    "stream.end.pause": EndSharedStream(stream_id=TASK, pauses=True),
}
ASKED = replace(said(TEXT), message_id="0191e8f0-0000-7000-8000-000000000002", context_id="c", task_id=TASK)
QUESTION = Message(message_id="q", role=Role.AGENT, parts=(Part(text="Which region?"),), context_id="c", task_id=TASK)
REPORT = Artifact(
    artifact_id="report",
    name="Sales report",
    description="Trends of the quarter",
    parts=(Part(text="up"), Part(raw=b"%PDF", filename="r.pdf", media_type="application/pdf")),
    metadata={"confidence": 0.94},
)


def answer(state: TaskState, *, said: Message | None = None, agent: str = "analyst", **more: Any) -> Answer:
    status = Status(state=state, timestamp=datetime(2026, 11, 23, 1, 55, 12, 631_000, UTC), message=said)
    task = Task(id=TASK, context_id="c", status=status, history=(ASKED,), **more)
    return Answer(task=document(task, 2, agent))


COMPLETED = answer(TaskState.COMPLETED, artifacts=(REPORT,), metadata={"category": "analytics"})
SUBMITTED = answer(TaskState.SUBMITTED)
assert COMPLETED.task
assert SUBMITTED.task
ANSWERS: dict[str, Answer] = {
    "submitted": SUBMITTED,
    "working": answer(TaskState.WORKING, agent=""),
    "input-required": answer(TaskState.INPUT_REQUIRED, said=QUESTION),
    "auth-required": answer(TaskState.AUTH_REQUIRED, said=QUESTION),
    "completed": COMPLETED,
    "completed.status": Answer(task=replace(COMPLETED.task, artifacts=None), history_length=0),
    "failed": answer(TaskState.FAILED),
    "rejected": answer(TaskState.REJECTED),
    "canceled": answer(TaskState.CANCELED),
}
FOLLOWS = {
    "all": FollowTask(id=TASK, notices=DEFAULT, shows_end=True),
    "after": FollowTask(id=TASK, notices=filter_of([Notice.FAILED]), after=7, shows_end=True),
}
"""The requests of tasks.subscribe without an address."""
SUBSCRIPTION = PushConfig(
    id="0191e8f0-0000-7000-8000-000000000003",
    task_id=TASK,
    url="https://agent.example/hook",
    notices=DEFAULT,
    created_at=datetime(2026, 11, 23, 1, 55, 12, 631_000, UTC),
)


def changed(state: TaskState, said: Message | None = None) -> StatusChanged:
    return StatusChanged(
        status=Status(state=state, timestamp=datetime(2026, 11, 23, 1, 55, 12, 631_000, UTC), message=said)
    )


EVENTS: dict[str, tuple[Event, int]] = {
    "working": (changed(TaskState.WORKING), EVERYTHING),
    "question": (changed(TaskState.INPUT_REQUIRED, QUESTION), EVERYTHING),
    "question.message": (changed(TaskState.INPUT_REQUIRED, QUESTION), filter_of([Notice.NEW_MESSAGE])),
    "message": (MessageAdded(message=ASKED), EVERYTHING),
    "artifact": (ArtifactAdded(artifact=REPORT, append=True, last_chunk=True), EVERYTHING),
    "completed": (changed(TaskState.COMPLETED), EVERYTHING),
    "completed.status": (changed(TaskState.COMPLETED), filter_of([Notice.STATUS_CHANGE])),
    "rejected": (changed(TaskState.REJECTED), EVERYTHING),
    "canceled": (changed(TaskState.CANCELED), EVERYTHING),
    "created": (TaskCreated(task=task_of(SUBMITTED.task)), EVERYTHING),
}
"""Events with the filters of subscriptions, which go out as notifications."""


def notifications() -> dict[str, Any]:
    """Return the notifications of the events, for a webhook and in a stream."""
    out = {}
    for place, (name, (event, choice)) in enumerate(EVENTS.items(), 2):
        row = event_document(event, task_id=TASK, context_id="c", seq=place)
        passed = with_notice(replace(row, at=datetime(2026, 11, 23, 1, 55, 12, 631_000, UTC)), choice)
        assert passed
        status = event.status if isinstance(event, StatusChanged) else changed(TaskState.SUBMITTED).status
        task = answer(status.state, said=status.message, artifacts=(REPORT,)).task
        assert task
        out[name] = {
            "webhook": json.loads(encode_push(passed, lambda task=task: task)),
            "stream": json.loads(encode_notification(passed)),
        }
    return out


BEGAN = datetime(2026, 11, 23, 2, 8, 20, 128_000, UTC)
ACTIVE = SharedStreamDocument(
    id=TASK,
    state=SharedStreamState.ACTIVE,
    participants=("developer", "analyst"),
    seq=0,
    created_at=BEGAN,
    metadata={"purpose": "consultation"},
)
PAUSED = replace(ACTIVE, state=SharedStreamState.PAUSED, seq=4)
CLOSED = replace(ACTIVE, state=SharedStreamState.CLOSED, seq=5, closed_at=BEGAN, metadata=None)
STREAMS: dict[str, tuple[str, SharedStreamDocument | ChunkReceipt]] = {
    "active": ("stream.start", ACTIVE),
    "paused": ("stream.start", PAUSED),
    "closed": ("stream.start", CLOSED),
    "message": ("stream.message", ChunkReceipt(stream_id=TASK, seq=1)),
    "chunk": ("stream.chunk", ChunkReceipt(stream_id=TASK, seq=2)),
    "chunk.repeat": ("stream.chunk", ChunkReceipt(stream_id=TASK, seq=2, is_repeat=True)),
    "pause": ("stream.end", PAUSED),
    "end": ("stream.end", CLOSED),
}
"""The results of the methods of streams, each with its method."""
CHUNK = ChunkDocument(
    stream_id=TASK, seq=1, author="developer", role=ChunkRole.USER, parts=(TEXT,), created_at=BEGAN, is_last=True
)
CHUNKS: dict[str, ChunkDocument] = {
    "user": CHUNK,
    "agent": replace(
        CHUNK,
        seq=2,
        author="analyst",
        role=ChunkRole.AGENT,
        parts=(Part(text="up"), Part(data={"rate": 0.23}), Part(raw=b"%PDF", media_type="application/pdf")),
        is_last=False,
    ),
    "system": replace(
        CHUNK,
        seq=3,
        role=ChunkRole.SYSTEM,
        parts=(Part(text="Done", media_type="text/plain"),),
        state=SharedStreamState.CLOSED,
    ),
}
"""Chunks, which go out as notifications."""
PLACES = {"requires": "acp:agent:identify acp:tasks:write", "tokens": "https://auth.example/oauth2/token"}
FACTS: dict[type[Error], dict[str, str]] = {
    errors.TaskNotFound: {"taskId": "nonexistent-task"},
    errors.TaskEnded: {"taskId": TASK, "detail": "the task has ended: it is completed"},
    errors.UnknownAgent: {"agent": "nobody"},
    errors.Internal: {"reference": "018f2c7e-2222-7000-8000-000000000002"},
    errors.Unauthenticated: {"required": PLACES["requires"], "tokenUrl": PLACES["tokens"]},
    errors.ExpiredKey: {"required": PLACES["requires"], "tokenUrl": PLACES["tokens"]},
    errors.MissingScope: {"required": "acp:tasks:cancel", "provided": "acp:tasks:read acp:tasks:write"},
    errors.ContentTypeNotSupported: {
        "part": "message.parts[0]",
        "mediaType": "video/mp4",
        "supported": "text/plain",
    },
}


def error_of(kind: type[Error]) -> Error:
    facts = FACTS.get(kind, {}) | {"timestamp": TIME}
    if kind is errors.InvalidParams:
        return errors.InvalidParams(("taskId", "must be a string, not an integer"), **facts)
    return kind(**facts)


def recording() -> dict[str, Any]:
    """Return the errors and the answers as they are sent now."""
    answers = {name: json.loads(bytes(LANGUAGE.methods["tasks.get"].encode(value))) for name, value in ANSWERS.items()}
    failures = {kind.__name__: LANGUAGE.error(error_of(kind)) for kind in errors.ALL}
    return {
        "answers": answers,
        "streams": {
            name: json.loads(LANGUAGE.methods[method].encode(value)) for name, (method, value) in STREAMS.items()
        },
        "subscription": json.loads(LANGUAGE.methods["tasks.subscribe"].encode(SUBSCRIPTION)),
        "notifications": notifications(),
        "chunks": {name: json.loads(encode_chunk(chunk)) for name, chunk in CHUNKS.items()},
        "errors": json.loads(json.dumps(failures)),
    }


@pytest.mark.requirement("ACP-06", "ACP-07", "ACP-08")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_decodes_to_its_value(name: str) -> None:
    member = jsonrpc.parse(json.dumps(GOLDEN["requests"][name]).encode())
    assert isinstance(member, Member)
    assert member.params is not UNSET
    assert LANGUAGE.methods[member.method].decode(member.params) == REQUESTS[name]


@pytest.mark.requirement("ACP-09", "ACP-22")
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_encodes_to_its_json(name: str) -> None:
    assert recording()["answers"][name] == GOLDEN["answers"][name]


@pytest.mark.requirement("ACP-10", "ACP-11", "ACP-15")
@pytest.mark.parametrize("kind", errors.ALL, ids=lambda kind: kind.__name__)
def test_an_error_encodes_to_its_json(kind: type[Error]) -> None:
    assert recording()["errors"][kind.__name__] == GOLDEN["errors"][kind.__name__]


@pytest.mark.requirement("ACP-07", "ACP-08", "ACP-24")
@pytest.mark.parametrize("part", ["streams", "chunks"])
def test_streams_and_chunks_encode_to_their_json(part: str) -> None:
    assert recording()[part] == GOLDEN[part]


@pytest.mark.requirement("ACP-08", "ACP-23")
@pytest.mark.parametrize("name", EVENTS)
def test_a_notification_encodes_to_its_json(name: str) -> None:
    assert notifications()[name] == GOLDEN["notifications"][name]


@pytest.mark.requirement("ACP-06", "ACP-23")
def test_a_subscription_encodes_to_its_json() -> None:
    assert recording()["subscription"] == GOLDEN["subscription"]


@pytest.mark.requirement("ACP-08")
@pytest.mark.parametrize("name", FOLLOWS)
def test_a_request_to_follow_decodes_to_its_value(name: str) -> None:
    follow = LANGUAGE.methods["tasks.subscribe"].as_stream
    assert follow
    assert follow.decode(GOLDEN["follows"][name]["params"]) == FOLLOWS[name]


def test_nothing_else_is_recorded() -> None:
    recorded = recording()
    assert set(GOLDEN) == {"requests", "follows", *recorded}
    assert set(GOLDEN["requests"]) == set(REQUESTS)
    assert set(GOLDEN["follows"]) == set(FOLLOWS)
    assert {part: set(recorded[part]) for part in recorded} == {part: set(GOLDEN[part]) for part in recorded}
