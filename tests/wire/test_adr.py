"""The wire of ADR-002, as recorded in adr.json: calls decode to these values, answers, events, errors and the card
encode to this JSON.

To see what ADR-002 looks like here, read that file; to change it on purpose, change the file.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from a2a import errors
from a2a.answers import Agreement, Answer, Frame, Offer
from a2a.dialects import adr
from a2a.envelopes import Member
from a2a.errors import Error
from a2a.money import MICRO, Cost
from a2a.requests import Invoke, Negotiate, Request, StreamInvoke
from a2a.states import TaskState
from a2a.types import Artifact, Card, Message, Part, Privacy, Role, Terms
from tests.wire import values
from tests.wire.values import CONTEXT, TASK

GOLDEN = json.loads(Path(__file__).with_name("adr.json").read_text(encoding="utf-8"))
INVOKE, STREAM, NEGOTIATE = adr.ENDPOINTS
CALLED = Message(message_id="", role=Role.USER, parts=(Part(data={"message": "hello", "limit": 3}),))
REQUESTS: dict[str, Request] = {
    "invoke": Invoke(name="echo", message=CALLED),
    "invoke.no-params": Invoke(name="echo", message=replace(CALLED, parts=(Part(data={}),))),
    "invoke/stream": StreamInvoke(name="echo", message=CALLED),
    "negotiate": Negotiate(capabilities=("summarise", "audit"), budget=700_000),
    "negotiate.empty": Negotiate(),
}
FILES = Artifact(
    artifact_id="report",
    parts=(
        Part(raw=b"%PDF", filename="r.pdf", media_type="application/pdf"),
        Part(url="https://files.example.com/terms.pdf", filename="terms.pdf"),
    ),
)
ANSWERS: dict[str, Answer] = {
    "completed": values.COMPLETED,
    "completed.files": Answer(task=values.task(TaskState.COMPLETED, artifacts=(values.SUMMARY, FILES))),
    "input-required": values.INPUT_REQUIRED,
    "auth-required": Answer(task=values.task(TaskState.AUTH_REQUIRED, said=values.QUESTION)),
    "message": values.REPLIED,
}
REFUSALS: dict[str, Answer] = {
    "working": values.WORKING,
    "failed": Answer(task=values.task(TaskState.FAILED, said=replace(values.HELLO, parts=(Part(text="No paper."),)))),
    "failed.timeout": Answer(
        task=values.task(TaskState.FAILED, said=replace(values.HELLO, metadata={"reason": "TIMEOUT"}))
    ),
    "failed.budget": Answer(
        task=values.task(TaskState.FAILED, said=replace(values.HELLO, metadata={"reason": "BUDGET_EXCEEDED"}))
    ),
    "rejected": Answer(task=values.task(TaskState.REJECTED)),
    "canceled": values.CANCELED,
}
"""Tasks whose state is told by an error."""
COST = Cost(MICRO // 2, MICRO)
GRANT = Offer(capability="summarise", agent="invoices", cost=COST)
AGREEMENTS: dict[str, Agreement] = {
    "agreement": Agreement(offers=(GRANT, Offer(capability="echo", agent="echo"))),
    "degradation": Agreement(
        offers=(replace(GRANT, is_limited=True), Offer(capability="nope", refusal=errors.UnknownAgent))
    ),
    "refusal": Agreement(
        offers=(
            replace(GRANT, refusal=errors.BudgetExceeded),
            Offer(capability="audit", agent="invoices", refusal=errors.MissingScope),
        )
    ),
}
EVENTS: dict[str, tuple[Frame, ...]] = {
    "completed": values.STREAM_COMPLETED,
    "input-required": values.STREAM_INPUT_REQUIRED,
    "message": values.STREAM_MESSAGE,
}
TERMS = Terms(
    input_tokens=250_000,
    output_tokens=500_000,
    latency=30.0,
    cost=COST,
    per_minute=600,
    privacy=Privacy(pii=True, phi=False, notes="Invoices have names."),
    retention_days=30,
    auth={"method": "oidc", "issuer": "https://id.example.com", "audience": "a2a"},
)
CARD: Card = replace(values.CARD, terms=TERMS)
FACTS: dict[type[Error], dict[str, str]] = {
    errors.TaskEnded: {"taskId": TASK, "detail": "the task is canceled"},
    errors.Timeout: {"taskId": TASK},
    errors.BudgetExceeded: {"required": "0.50", "available": "0.25", "budget": "call"},
    errors.Internal: {"reference": "018f2c7e-2222-7000-8000-000000000002"},
    errors.MissingScope: {"required": "tasks:write", "provided": "tasks:read"},
}


def error_of(kind: type[Error]) -> Error:
    if kind is errors.InvalidParams:
        return errors.InvalidParams(("X-Request-ID", "is missing"))
    return kind(**FACTS.get(kind, {}))


def failure(error: Error) -> dict[str, Any]:
    """Return the HTTP status and the error of a failure."""
    return {"status": adr.COLUMN[error.row].status, "error": adr.LANGUAGE.error(error)}


def refused(answer: Answer) -> dict[str, Any]:
    error = adr.refusal(answer)
    assert error is not None
    return failure(error)


def recording() -> dict[str, Any]:
    """Return all that is sent now."""
    recorded = {
        "answers": {name: json.loads(adr.encode_outcome(answer)) for name, answer in ANSWERS.items()},
        "refusals": {name: refused(answer) for name, answer in REFUSALS.items()},
        "agreements": {name: json.loads(adr.encode_agreement(agreement)) for name, agreement in AGREEMENTS.items()},
        "events": {name: [text_of(frame) for frame in frames] for name, frames in EVENTS.items()},
        "errors": {kind.__name__: failure(error_of(kind)) for kind in errors.ALL},
        "cards": {"card": adr.encode_card(CARD)},
    }
    plain: dict[str, Any] = json.loads(json.dumps(recorded))
    return plain


def text_of(frame: Frame) -> str | None:
    """Return the data of the event for a frame; None for a frame without an event."""
    data = adr.encode_frame(frame, None)
    return None if data is None else data.decode()


@pytest.mark.requirement("ADR-02", "ADR-03", "ADR-04")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_decodes_to_its_value(name: str) -> None:
    endpoint = {"invoke": INVOKE, "invoke/stream": STREAM, "negotiate": NEGOTIATE}[name.partition(".")[0]]
    wire = GOLDEN["requests"][name]
    if endpoint is NEGOTIATE:
        assert adr.decode_negotiate(wire) == REQUESTS[name]
        return
    member = endpoint.envelope.parse(json.dumps(wire).encode())
    assert isinstance(member, Member)
    assert endpoint.neutral.methods[member.method].decode(member.params) == REQUESTS[name]


@pytest.mark.requirement("ADR-01", "ADR-02", "ADR-03", "ADR-04", "ADR-10")
@pytest.mark.parametrize("part", ["answers", "refusals", "agreements", "events", "errors", "cards"])
def test_values_encode_to_their_json(part: str) -> None:
    recorded = recording()[part]
    for name, wire in GOLDEN[part].items():
        assert recorded.get(name) == wire, name
    assert set(recorded) == set(GOLDEN[part])


def test_nothing_else_is_recorded() -> None:
    assert set(GOLDEN) == {"requests", *recording()}
    assert set(GOLDEN["requests"]) == set(REQUESTS)
    assert {frame["context_id"] for frame in GOLDEN["answers"].values() if "context_id" in frame} == {CONTEXT}
