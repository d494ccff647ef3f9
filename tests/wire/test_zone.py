"""The wire of zones, as recorded in zone.json: calls decode to these values, outcomes and errors encode to this JSON.

To see what zones look like here, read that file; to change it on purpose, change the file.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from a2a import errors
from a2a.agents import registry
from a2a.answers import Answer
from a2a.client.languages.zone import LANGUAGE as CLIENT
from a2a.dialects import zone
from a2a.documents import TaskDocument
from a2a.envelopes import Member, jsonrpc
from a2a.errors import Error
from a2a.requests import Execute, GetExtendedCard, GetTask, Request
from a2a.states import TaskState
from a2a.types import Artifact, Message, Part, Role
from tests.wire import values
from tests.wire.values import TASK

GOLDEN = json.loads(Path(__file__).with_name("zone.json").read_text(encoding="utf-8"))
FACTS = {
    "channel": "C024BE91L",
    "correlation_id": "corr-1",
    "thread_ts": "1700000000.000100",
    "team_id": "T1",
    "user_id": "U1",
}
EXECUTE = Execute(
    message=Message(message_id="", role=Role.USER, parts=(Part(text="Summarise the invoice."),)),
    metadata={"zone": {"channel": "C024BE91L"}},
    history_length=0,
    queued=True,
    secrets={"bot_token": "xoxb-1"},
)
FULL = Message(
    message_id="Ev1",
    role=Role.USER,
    parts=(
        Part(text="Summarise the invoice."),
        Part(raw=b"%PDF", filename="invoice.pdf", media_type="application/pdf"),
        Part(url="https://files.example.com/terms.pdf", filename="terms.pdf", metadata={"size": 12_000_000}),
    ),
    context_id="C024BE91L/1700000000.000100",
)
REQUESTS: dict[str, Request] = {
    "execute_task": EXECUTE,
    "execute_task.full": replace(EXECUTE, message=FULL, metadata={"zone": FACTS}, agent="invoices"),
    "execute_task.follow-up": replace(EXECUTE, message=replace(EXECUTE.message, task_id=TASK)),
    "execute_task.accepted": replace(EXECUTE, return_immediately=True),
    "execute_task.patient": replace(EXECUTE, wait_seconds=2.5),
    "get_task": GetTask(id=TASK, history_length=0),
    "get_agent_card": GetExtendedCard(),
}
FILES = Artifact(
    artifact_id="report",
    parts=(
        Part(raw=b"%PDF", filename="r.pdf", media_type="application/pdf"),
        Part(url="https://files.example.com/terms.pdf", filename="terms.pdf"),
    ),
)


def marked(document: TaskDocument, **facts: Any) -> TaskDocument:
    return replace(document, metadata=json.dumps({"zone": facts}))


FAILED = values.task(TaskState.FAILED, said=replace(values.HELLO, parts=(Part(text="No paper."),)))
SKIPPED = [{"name": "large.pdf", "reason": "the attachment has 12,000,000 bytes, and may have 10,485,760"}]
OUTCOMES: dict[str, TaskDocument] = {
    "success": marked(values.task(TaskState.COMPLETED, artifacts=(values.SUMMARY,)), correlation_id="corr-1"),
    "success.files": values.task(TaskState.COMPLETED, artifacts=(values.SUMMARY, FILES)),
    "success.skipped": marked(
        values.task(TaskState.COMPLETED, artifacts=(values.SUMMARY,)), skipped_attachments=SKIPPED
    ),
    "success.message": values.task(TaskState.COMPLETED, said=values.HELLO),
    "accepted": values.task(TaskState.WORKING),
    "accepted.text": values.task(TaskState.WORKING, artifacts=(values.SUMMARY,)),
    "input-required": values.task(TaskState.INPUT_REQUIRED, said=values.QUESTION),
    "auth-required": values.task(TaskState.AUTH_REQUIRED, said=values.QUESTION),
    "error": FAILED,
}
"""Tasks as results. The one with an error is of an agent whose failures are results."""
REFUSALS: dict[str, TaskDocument] = {
    "failed": FAILED,
    "failed.timeout": values.task(TaskState.FAILED, said=replace(values.HELLO, metadata={"reason": "TIMEOUT"})),
    "failed.budget": values.task(TaskState.FAILED, said=replace(values.HELLO, metadata={"reason": "BUDGET_EXCEEDED"})),
    "rejected": values.task(TaskState.REJECTED),
    "canceled": values.task(TaskState.CANCELED),
}
"""Tasks that are errors."""
FACTS_OF: dict[type[Error], dict[str, str]] = {
    errors.TaskNotFound: {"taskId": TASK},
    errors.TaskEnded: {"taskId": TASK, "detail": "the task is canceled"},
    errors.Timeout: {"taskId": TASK},
    errors.BudgetExceeded: {"required": "0.50", "available": "0.25", "budget": "call"},
    errors.Internal: {"reference": "018f2c7e-2222-7000-8000-000000000002"},
    errors.MissingScope: {"required": "tasks:write", "provided": "tasks:read"},
}


def error_of(kind: type[Error]) -> Error:
    if kind is errors.InvalidParams:
        return errors.InvalidParams(("bot_token", "is required"))
    return kind(**FACTS_OF.get(kind, {}))


def failure(error: Error) -> dict[str, Any]:
    """Return the HTTP status and the error of a failure."""
    return {"status": zone.COLUMN[error.row].status, "error": zone.LANGUAGE.error(error)}


def refused(document: TaskDocument) -> dict[str, Any]:
    error = zone.refusal(Answer(task=document))
    assert error is not None
    return failure(error)


def recording() -> dict[str, Any]:
    """Return all that is sent now."""
    recorded = {
        "outcomes": {name: json.loads(zone.encode_outcome(Answer(task=task))) for name, task in OUTCOMES.items()},
        "refusals": {name: refused(task) for name, task in REFUSALS.items()},
        "errors": {kind.__name__: failure(error_of(kind)) for kind in errors.ALL},
    }
    plain: dict[str, Any] = json.loads(json.dumps(recorded))
    return plain


@pytest.mark.requirement("ZONE-01", "ZONE-02", "ZONE-05")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_decodes_to_its_value(name: str) -> None:
    member = jsonrpc.parse(json.dumps(GOLDEN["requests"][name]).encode())
    assert isinstance(member, Member)
    assert member.method == name.partition(".")[0]
    assert zone.LANGUAGE.methods[member.method].decode(member.params) == REQUESTS[name]


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("bot_token", "x" * 4_097, "must have 4096 characters at most"),
        ("attachments", [{"url": "https://x/y"}] * 1_001, "must have 1000 items at most"),
    ],
)
def test_a_message_has_limits_that_its_body_does_not_set(field: str, value: Any, sentence: str) -> None:
    params = {"channel": "C1", "text": "hello", "bot_token": "xoxb-1"}
    with pytest.raises(errors.InvalidParams) as refusal:
        zone.decode_execute(params | {field: value})
    assert refusal.value.violations == ((field, sentence),)
    assert zone.decode_execute(params | {field: value[:-1]}).message.parts[0].text == "hello"


@pytest.mark.parametrize("name", REQUESTS)
def test_our_client_sends_the_request(name: str) -> None:
    request, wire = REQUESTS[name], GOLDEN["requests"][name]
    if isinstance(request, Execute):
        # The server makes the context of the channel and the thread, which the client sends.
        request = replace(request, message=replace(request.message, context_id=None))
        wire = wire | {"params": {"wait": True} | wire["params"]}
    operation = CLIENT.operation(request)
    assert (operation.method, operation.encode(request)) == (wire["method"], wire.get("params", {}))


@pytest.mark.parametrize("name", OUTCOMES)
def test_our_client_reads_the_outcome(name: str) -> None:
    wire = GOLDEN["outcomes"][name]
    task = CLIENT.operations[GetTask].decode(wire)
    states = {"success": "completed", "accepted": "working", "input_required": "input_required", "error": "failed"}
    assert (task.id, task.status.state) == (TASK, states[wire["status"]])
    texts = [part.text for artifact in task.artifacts for part in artifact.parts if part.text]
    message = task.status.message.text if task.status.message else ""
    if wire["status"] == "input_required":
        assert (texts, message) == ([], wire["response_text"])
    else:
        assert ("".join(texts), message) == (wire["response_text"], wire.get("error", {}).get("message", ""))


@pytest.mark.requirement("ZONE-01", "ZONE-07", "ZONE-11")
@pytest.mark.parametrize("part", ["outcomes", "refusals", "errors"])
def test_values_encode_to_their_json(part: str) -> None:
    recorded = recording()[part]
    for name, wire in GOLDEN[part].items():
        assert recorded.get(name) == wire, name
    assert set(recorded) == set(GOLDEN[part])


def test_a_failure_is_a_result_for_an_agent_with_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Answer(task=FAILED)
    assert zone.refusal(answer) is not None
    agent = registry.get("echo")
    assert agent is not None
    monkeypatch.setattr(registry, "get", lambda name: replace(agent, failures_as_results=True))
    assert zone.refusal(answer) is None


def test_the_card_is_that_of_1_0() -> None:
    golden = json.loads(Path(__file__).with_name("v1_0.json").read_text(encoding="utf-8"))
    body = zone.LANGUAGE.methods["get_agent_card"].encode(values.EXTENDED_CARD)
    assert json.loads(body) == golden["GetExtendedAgentCard.response"]["json"]["result"]


def test_nothing_else_is_recorded() -> None:
    assert set(GOLDEN) == {"requests", *recording()}
    assert set(GOLDEN["requests"]) == set(REQUESTS)
    assert {REQUESTS[name].__class__ for name in REQUESTS} == {m.request for m in zone.LANGUAGE.methods.values()}
