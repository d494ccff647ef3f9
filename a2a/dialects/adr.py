"""ADR-002: agents that are called by name, with a card, a negotiation, calls and streams of bare text
(docs/systems/adr-002.md). Its JSON is in schemas/adr.py."""

import re
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import msgspec
import orjson
from msgspec.structs import replace

from a2a import errors, sse
from a2a.answers import Agreement, Answer, Frame, Offer, Result
from a2a.choice import Endpoint, Row, by_method
from a2a.dialects.json.json_1_0 import decode_message, decode_part, encode_part, task_of
from a2a.dialects.outcomes import error_of, output_of
from a2a.dialects.schemas import adr as types
from a2a.documents import EventDocument, TaskDocument
from a2a.envelopes import Envelope, bare, naming
from a2a.errors import Error, InvalidParams
from a2a.language import Cell, Column, Language, Method, Rest, Route
from a2a.money import MICRO, MOST, usd
from a2a.params import check, or_empty
from a2a.requests import Invoke, Negotiate, StreamInvoke
from a2a.states import INTERRUPTED, TERMINAL
from a2a.types import Card, Json, Message, Part, Role, Terms

# -------------------------------------------------------------------- errors


_WRONG, _AWAY = "VALIDATION_ERROR", "AGENT_UNAVAILABLE"
COLUMN: Column = {
    errors.ParseError: Cell(-32700, 400, reason=_WRONG),
    errors.InvalidRequest: Cell(-32600, 400, reason=_WRONG),
    errors.MethodNotFound: Cell(-32601, 400, reason=_WRONG),
    errors.InvalidParams: Cell(-32602, 400, reason=_WRONG),
    errors.IdempotencyConflict: Cell(-38012, 409),
    errors.Internal: Cell(-32603, 500),
    errors.TaskNotFound: Cell(-38001, 404),
    errors.TaskNotCancelable: Cell(-38002, 409),
    errors.TaskEnded: Cell(-38004, 409),
    errors.PushNotSupported: Cell(-38003, 400),
    errors.UnsupportedOperation: Cell(-38004, 409),
    errors.ContentTypeNotSupported: Cell(-32602, 400, reason=_WRONG),
    errors.InvalidAgentResponse: Cell(-32603, 500, reason="AGENT_FAILED"),
    errors.ExtendedCardNotConfigured: Cell(-38004, 409),
    errors.ExtensionSupportRequired: Cell(-32600, 400, reason=_WRONG),
    errors.VersionNotSupported: Cell(-32600, 400, reason=_WRONG),
    errors.SharedStreamNotFound: Cell(-38001, 404),
    errors.SharedStreamClosed: Cell(-38004, 409),
    errors.MemoryNotFound: Cell(-38001, 404),
    errors.WorkflowNotFound: Cell(-38001, 404),
    errors.PhaseRefused: Cell(-38004, 409),
    errors.UnknownAgent: Cell(-32000, 404, reason=_AWAY),
    errors.BudgetExceeded: Cell(-32001, 402),
    errors.Timeout: Cell(-32002, 408),
    errors.RateLimited: Cell(-32003, 429),
    errors.Unauthenticated: Cell(-38009, 401),
    errors.ExpiredKey: Cell(-38009, 401, reason=errors.Unauthenticated.reason),
    errors.MissingScope: Cell(-38010, 403),
    errors.PermissionDenied: Cell(-38011, 403),
    errors.Unavailable: Cell(-32000, 503, reason=_AWAY),
}
"""The numbers, the HTTP statuses and the reasons of ADR-002, and those of JSON-RPC. Numbers from -38000 to -38999 are
additions of this server, for errors that ADR-002 lacks."""


def encode_error(error: Error, code: int) -> Json:
    """Return the error object. `data` has the reason and the facts."""
    data: Json = {"reason": COLUMN[error.row].reason or error.reason, **error.facts}
    if data["reason"] == _AWAY:
        data["retryable"] = isinstance(error, errors.Unavailable)
    if isinstance(error, InvalidParams) and error.violations:
        data["violations"] = [{"field": field, "description": text} for field, text in error.violations]
    return {"code": code, "message": error.full_message, "data": data}


def encode_bare_error(error: Error, status: int, name: str) -> Json:
    """Return the body of an error at /negotiate, which has the form of all others."""
    return {"jsonrpc": "2.0", "id": None, "error": encode_error(error, LANGUAGE.code(error))}


def words(error: Error) -> Error:
    """Return an operation's error in the words of ADR-002, where an unknown name is an unknown method, and the id of a
    request is that of its message."""
    if isinstance(error, errors.IdempotencyConflict) and "messageId" in error.facts:
        return errors.RequestConflict(requestId=error.facts["messageId"])
    if isinstance(error, errors.UnknownAgent) and "method" in error.facts:
        method = error.facts["method"]
        return errors.MethodNotFound(method=method, detail=f"no agent and no skill of this server is called {method!r}")
    if isinstance(error, InvalidParams):
        violations = ((_PATH.sub("params", field), text) for field, text in error.violations)
        return InvalidParams(*violations, **error.facts)
    return error


_PATH = re.compile(r"message\.parts(?:\[\d+\](?:\.data)?)?(?![\w\[])")
"""The path of the arguments in the message that is made of them."""


# --------------------------------------------------------------------- calls

Invocation = TypeVar("Invocation", bound=Invoke)


def decode_invoke(request: type[Invocation], params: Any) -> Invocation:
    """Decode a call. The header X-Request-ID gives it its id. Raises InvalidParams."""
    wire = check(params, types.InvokeParams)
    message = Message(message_id="", role=Role.USER, parts=(Part(data=wire["params"]),))
    return request(name=wire["method"], message=message)


def decode_negotiate(params: Any) -> Negotiate:
    """Decode a negotiation. Raises InvalidParams."""
    wire = check(or_empty(params), types.NegotiateParams)
    capabilities, budget = wire.get("capabilities", ()), wire.get("budget_usd")
    if len(capabilities) > types.MAX_CAPABILITIES:
        raise InvalidParams(("capabilities", f"must have {types.MAX_CAPABILITIES:,} entries at most"))
    return Negotiate(capabilities=tuple(capabilities), budget=None if budget is None else _micros(budget))


def _micros(budget: float) -> int:
    """Return an amount, rounded down: a budget must not grow. Raises InvalidParams."""
    if budget > MOST:
        raise InvalidParams(("budget_usd", f"must be {MOST} at most"))
    return int(Decimal(str(budget)) * MICRO)


def encode_outcome(answer: Answer) -> bytes:
    """Return the result of a call: what the agent has given, or its question."""
    if answer.message is not None:
        return orjson.dumps(_output("completed", list(answer.message.parts)))
    if answer.task is None:
        raise TypeError("an answer has a task or a message")
    task = task_of(answer.task)
    outcome = _output(task.status.state.value, [part for artifact in task.artifacts for part in artifact.parts])
    question = task.status.message.text if task.status.message and task.status.state in INTERRUPTED else ""
    return orjson.dumps(
        outcome | ({"question": question} if question else {}) | {"task_id": task.id, "context_id": task.context_id}
    )


def _output(status: str, parts: list[Part]) -> Json:
    """Return the members with the status, texts, data and files."""
    return {"status": status} | output_of(parts)


def refusal(result: Result | Frame) -> Error | None:
    """Return the error that answers for the end of a task; None for a task that has completed or asks a question.

    A task that is at work at the end of a wait is a timeout.
    """
    match result:
        case Answer(task=TaskDocument(state=state) as task):
            if state not in TERMINAL and state not in INTERRUPTED:
                detail = "the task goes on; the same call under the same X-Request-ID returns its outcome"
                return errors.Timeout(taskId=task.id, detail=detail)
            return error_of(task.id, state, task.status)
        case TaskDocument(state=state):
            return error_of(result.id, state, result.status)
        case EventDocument(kind="statusUpdate", state=str(state)):
            return error_of(result.task_id, state, msgspec.json.decode(result.payload)["status"])
        case _:
            return None


def encode_frame(frame: Frame, history_length: int | None) -> bytes | None:
    """Return the text that an event adds: that of the agent's output, or of its question. Data and files are JSON."""
    match frame:
        case Message():
            return _text_of(frame.parts)
        case EventDocument(kind="artifactUpdate"):
            wire = msgspec.json.decode(frame.payload)["artifact"]
            return _text_of(tuple(decode_part(part) for part in wire["parts"]))
        case EventDocument(kind="statusUpdate", state=str(state)) if state in INTERRUPTED:
            status = msgspec.json.decode(frame.payload)["status"]
            return _text_of(decode_message(status["message"]).parts) if "message" in status else None
        case _:
            return None


def _text_of(parts: tuple[Part, ...]) -> bytes | None:
    pieces = [part.text.encode() if part.text is not None else orjson.dumps(_value(part)) for part in parts]
    return b"\n".join(piece for piece in pieces if piece) or None


def _value(part: Part) -> Any:
    return part.data if part.raw is None and part.url is None else encode_part(part)


# --------------------------------------------------------------- negotiation


def encode_agreement(agreement: Agreement) -> bytes:
    """Return the outcome of a negotiation."""
    refused = [offer for offer in agreement.offers if offer.refusal]
    limited = [_cost_of(offer) for offer in agreement.offers if offer.is_limited]
    answer: Json = {
        "accepted": agreement.outcome != "refusal",
        "outcome": agreement.outcome,
        "capabilities": [offer.capability for offer in agreement.offers if offer.refusal is None],
        "limitations": ({"refused": [_refused(offer) for offer in refused]} if refused else {})
        | ({"budget": limited} if limited else {}),
    }
    return orjson.dumps(answer)


def _refused(offer: Offer) -> Json:
    reason = LANGUAGE.reason(offer.refusal or errors.UnknownAgent)
    least = {} if offer.cost is None else {"min_cost_usd": float(usd(offer.cost.least))}
    return {"capability": offer.capability, "reason": reason} | least


def _cost_of(offer: Offer) -> Json:
    least, most = (offer.cost.least, offer.cost.most) if offer.cost else (0, 0)
    return {
        "capability": offer.capability,
        "min_cost_usd": float(usd(least)),
        "max_cost_usd": float(usd(most)),
    }


# ---------------------------------------------------------------------- card

_NUMBERS = re.compile(r"(0|[1-9]\d{0,8})(?:\.(0|[1-9]\d{0,8}))?")
_TEXT: Json = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": True}
"""The schema of arguments for an agent that takes a text."""
_DEGRADATION: Json = {
    "on_timeout": "The call is answered with TIMEOUT and its task goes on: the same call under the same X-Request-ID "
    "waits again, and returns the outcome.",
    "on_budget_exceeded": "A call whose budget is below min_cost_per_invoke is refused with BUDGET_EXCEEDED. With a "
    "budget below max_cost_per_invoke its task ends when it has cost the budget.",
}


def encode_card(card: Card) -> Json:
    """Return the card. Raises TypeError for a card without terms."""
    if (terms := card.terms) is None:
        raise TypeError("the card of ADR-002 needs the terms of the agent")
    return {
        "id": card.name,
        "version": semantic(card.version),
        "description": card.description,
        "capabilities": [skill.id for skill in card.skills],
        "inputs": terms.inputs or _TEXT,
        "outputs": types.schema_of(types.Outcome),
        "limits": _limits(terms),
        "privacy": _privacy(terms),
        "auth": terms.auth,
        "degradation": _DEGRADATION,
    }


def semantic(version: str) -> str:
    """Return a version with three numbers, as Semantic Versioning demands; other texts are build metadata of 0.0.0."""
    if re.fullmatch(types.SEMVER, version):
        return version
    if match := _NUMBERS.fullmatch(version):
        return f"{match[1]}.{match[2] or 0}.0"
    return f"0.0.0+{re.sub('[^0-9A-Za-z-]+', '-', version).strip('-') or 'unknown'}"


def _limits(terms: Terms) -> Json:
    least, most = (terms.cost.least, terms.cost.most) if terms.cost else (0, 0)
    limits: Json = {
        "max_input_tokens": terms.input_tokens,
        "max_output_tokens": terms.output_tokens,
        "max_latency_ms": max(1, round(terms.latency * 1000)),
        "max_cost_per_invoke": float(usd(most)),
        "min_cost_per_invoke": float(usd(least)),
    }
    return limits | ({} if terms.per_minute is None else {"rate_limit_rpm": terms.per_minute})


def _privacy(terms: Terms) -> Json:
    privacy: Json = {"pii": terms.privacy.pii, "phi": terms.privacy.phi}
    if terms.retention_days is not None:
        privacy["data_retention_days"] = terms.retention_days
    return privacy | ({"notes": terms.privacy.notes} if terms.privacy.notes else {})


# ------------------------------------------------------------------ language


def _invoke(request: type[Invoke]) -> Method:
    return Method(
        request=request,
        decode=partial(decode_invoke, request),
        encode=encode_outcome,
        params=types.InvokeParams,
        result=types.Outcome,
    )


LANGUAGE = Language(
    name="adr",
    methods={"invoke": _invoke(Invoke), "invoke/stream": _invoke(StreamInvoke)},
    column=COLUMN,
    encode_error=encode_error,
    error_type=types.ErrorObject,
    encode_frame=encode_frame,
    words=words,
    encode_card=encode_card,
    key_header="X-Request-ID",
    agent_header="X-Agent-ID",
    refusal=refusal,
    framing=sse.text_frame,
)
NEGOTIATION = replace(
    LANGUAGE,
    methods={
        "negotiate": Method(
            request=Negotiate,
            decode=decode_negotiate,
            encode=encode_agreement,
            params=types.NegotiateParams,
            result=types.NegotiateAnswer,
        )
    },
    rest=Rest(
        routes=(Route(verb="POST", path="/negotiate", method="negotiate", camel=False),),
        media="application/json",
        statuses={error: (cell.status, cell.reason or error.reason) for error, cell in COLUMN.items()},
        encode_error=encode_bare_error,
        error_type=types.ErrorAnswer,
    ),
)
"""The language without an envelope."""


def _endpoint(name: str, path: str, envelope: Envelope, language: Language) -> Endpoint:
    return Endpoint(
        name=name,
        paths=(path,),
        envelope=envelope,
        neutral=language,
        rows=(Row(languages=(language,), choose=by_method),),
        body_setting="A2A_INVOKE_BYTES",
        has_openrpc=False,
    )


_CALLS = naming.for_operation("invoke", "invoke")
_STREAMS = naming.with_bare_results(naming.for_operation("invoke-stream", "invoke/stream"))
ENDPOINTS = (
    _endpoint("invoke", "invoke", _CALLS, LANGUAGE),
    _endpoint("invoke-stream", "invoke/stream", _STREAMS, LANGUAGE),
    _endpoint("negotiate", "", bare.ENVELOPE, NEGOTIATION),
)
"""The endpoints. The card is served beside those of A2A (card_choice.py)."""
