"""Zones: one deployment verifies the messages of a chat, and another executes them as tasks (docs/systems/zones.md).

A call is the work itself, so a task that fails is an error. Its JSON is in schemas/zone.py.
"""

import re
from typing import Any

import orjson

from a2a import errors
from a2a.agents import registry
from a2a.answers import Answer, Frame, Result
from a2a.choice import Row, by_method
from a2a.dialects.cards_1_0 import encode_extended_card
from a2a.dialects.json.json_1_0 import task_of
from a2a.dialects.outcomes import error_of, output_of
from a2a.dialects.schemas import zone as types
from a2a.dialects.schemas.answers_1_0 import AgentCard
from a2a.documents import TaskDocument
from a2a.errors import Error, InvalidParams
from a2a.language import Cell, Column, Language, Method
from a2a.params import check, or_empty, read_base64, read_id
from a2a.requests import Execute, GetExtendedCard, GetTask
from a2a.states import INTERRUPTED, TERMINAL, TaskState
from a2a.types import Json, Message, Part, Role

MARK = "zone"
"""The member of a task's metadata with the params of its call that are no content."""
_FACTS = ("channel", "correlation_id", "thread_ts", "team_id", "user_id")
_SUCCESS, _ACCEPTED, _QUESTION, _ERROR = "success", "accepted", "input_required", "error"

# -------------------------------------------------------------------- errors


COLUMN: Column = {
    errors.ParseError: Cell(-32700),
    errors.InvalidRequest: Cell(-32600),
    errors.MethodNotFound: Cell(-32601),
    errors.InvalidParams: Cell(-32602),
    errors.IdempotencyConflict: Cell(-38012, 409),
    errors.Internal: Cell(-32603),
    errors.TaskNotFound: Cell(-38001),
    errors.TaskNotCancelable: Cell(-38002),
    errors.TaskEnded: Cell(-38004),
    errors.PushNotSupported: Cell(-38003),
    errors.UnsupportedOperation: Cell(-38004),
    errors.ContentTypeNotSupported: Cell(-32602),
    errors.InvalidAgentResponse: Cell(-32603),
    errors.ExtendedCardNotConfigured: Cell(-38004),
    errors.ExtensionSupportRequired: Cell(-32600),
    errors.VersionNotSupported: Cell(-32600),
    errors.SharedStreamNotFound: Cell(-38001, reason=errors.TaskNotFound.reason),
    errors.SharedStreamClosed: Cell(-38001, reason=errors.TaskNotFound.reason),
    errors.MemoryNotFound: Cell(-38001, reason=errors.TaskNotFound.reason),
    errors.WorkflowNotFound: Cell(-38001, reason=errors.TaskNotFound.reason),
    errors.PhaseRefused: Cell(-38004),
    errors.UnknownAgent: Cell(-38005),
    errors.BudgetExceeded: Cell(-38006),
    errors.Timeout: Cell(-32001),
    errors.RateLimited: Cell(-38008, 429),
    errors.Unauthenticated: Cell(-38009, 401),
    errors.ExpiredKey: Cell(-38009, 401, reason=errors.Unauthenticated.reason),
    errors.MissingScope: Cell(-38010, 403),
    errors.PermissionDenied: Cell(-38011, 403),
    errors.Unavailable: Cell(-38013, 503),
}
"""The numbers of JSON-RPC, and that of a timeout. Numbers from -38000 to -38999 are additions of this server."""


def encode_error(error: Error, code: int) -> Json:
    """Return the error object. `data` has the reason and the facts."""
    data: Json = {"reason": COLUMN[error.row].reason or error.reason, **error.facts}
    if isinstance(error, InvalidParams) and error.violations:
        data["violations"] = [{"field": field, "description": text} for field, text in error.violations]
    if isinstance(error, errors.RateLimited | errors.Unavailable):
        data["retry_after"] = error.retry_after
    return {"code": code, "message": error.full_message, "data": data}


_WORDS = (
    (re.compile(r"message\.contextId"), "thread_ts"),
    (re.compile(r"message\.parts\[0\]"), "text"),
    (re.compile(r"message\.parts(?!\w)"), "attachments"),
)
"""The paths in the message that is made of the params, and the params."""


def words(error: Error) -> Error:
    """Return an operation's error with the names of the params in place of paths in the message that is made of
    them."""
    if not isinstance(error, InvalidParams):
        return error
    return InvalidParams(*((_param_of(field), text) for field, text in error.violations), **error.facts)


def _param_of(field: str) -> str:
    """Return the path in the params that a path in the message means."""
    for path, name in _WORDS:
        field = path.sub(name, field)
    return field


# -------------------------------------------------------------------- params


def decode_execute(params: Any) -> Execute:
    """Decode the params of execute_task. Raises InvalidParams."""
    wire = check(params, types.ExecuteParams)
    wait = wire.get("wait")
    parts = [Part(text=wire["text"])]
    parts += [_decode_attachment(item, place) for place, item in enumerate(wire.get("attachments") or ())]
    return Execute(
        message=Message(
            message_id=wire.get("idempotency_key") or "",
            role=Role.USER,
            parts=tuple(parts),
            task_id=read_id(wire, "task_id") if wire.get("task_id") is not None else None,
            context_id=_context_of(wire),
        ),
        metadata={MARK: {name: wire[name] for name in _FACTS if wire.get(name) is not None}},
        agent=wire.get("agent"),
        return_immediately=wait is not None and not wait,
        wait_seconds=float("inf") if wait is None or isinstance(wait, bool) else float(wait),
        history_length=0,
        queued=True,
        secrets={"bot_token": wire["bot_token"]},
    )


def _context_of(wire: Json) -> str | None:
    """Return the id of the context of a call; None for an answer to a question, and for a message without a thread."""
    if wire.get("task_id"):
        return None
    thread = wire.get("thread_ts")
    return wire.get("conversation") or (context_of(wire["channel"], thread) if thread else None)


def context_of(channel: str, thread: str) -> str:
    """Return the id of the context that the messages of a thread share."""
    return f"{channel}/{thread}"


def _decode_attachment(wire: Json, place: int) -> Part:
    """Return the part of a file. Raises InvalidParams for one that has neither a content nor an address."""
    name, media, size = wire.get("name"), wire.get("mimetype"), wire.get("size")
    if (content := wire.get("content")) is not None:
        raw = read_base64(content, f"attachments[{place}].content")
        return Part(raw=raw, filename=name, media_type=media)
    if not wire.get("url"):
        raise InvalidParams((f"attachments[{place}]", "must have a content or a url"))
    return Part(url=wire["url"], filename=name, media_type=media, metadata=None if size is None else {"size": size})


def decode_get(params: Any) -> GetTask:
    """Decode the params of get_task. Raises InvalidParams."""
    return GetTask(id=read_id(check(params, types.GetParams), "task_id"), history_length=0)


def decode_card(params: Any) -> GetExtendedCard:
    """Decode the params of get_agent_card, which has none. Raises InvalidParams."""
    check(or_empty(params), types.CardParams)
    return GetExtendedCard()


# ------------------------------------------------------------------- results


def encode_outcome(answer: Answer) -> bytes:
    """Return the outcome of a task, or its state so far."""
    if answer.task is None:
        raise TypeError("a task of a zone is always stored")
    return orjson.dumps(outcome_of(answer.task))


def outcome_of(document: TaskDocument) -> Json:
    """Return the result of a call."""
    task = task_of(document)
    state, note = task.status.state, task.status.message
    output = output_of([part for artifact in task.artifacts for part in artifact.parts])
    text = output.pop("text")
    if note is not None and (state in INTERRUPTED or (state in TERMINAL and not text)):
        text = note.text
    facts = (task.metadata or {}).get(MARK)
    facts = facts if isinstance(facts, dict) else {}
    outcome = {"status": _status_of(state), "response_text": text}
    outcome |= {"correlation_id": facts.get("correlation_id") or task.id, "task_id": task.id} | output
    if skipped := facts.get("skipped_attachments"):
        outcome["skipped_attachments"] = skipped
    if (error := error_of(document.id, document.state, document.status)) is not None:
        outcome["error"] = LANGUAGE.error(error)
    return outcome


def _status_of(state: TaskState) -> str:
    if state is TaskState.COMPLETED:
        return _SUCCESS
    if state in TERMINAL:
        return _ERROR
    return _QUESTION if state in INTERRUPTED else _ACCEPTED


def refusal(result: Result | Frame) -> Error | None:
    """Return the error of a task that has failed; None for any other, and for an agent whose failures are results."""
    task = result.task if isinstance(result, Answer) else None
    if task is None or (error := error_of(task.id, task.state, task.status)) is None:
        return None
    agent = registry.get(task.agent)
    return None if agent is not None and agent.failures_as_results else error


# ------------------------------------------------------------------ language

LANGUAGE = Language(
    name="zone",
    methods={
        "execute_task": Method(
            request=Execute,
            decode=decode_execute,
            encode=encode_outcome,
            params=types.ExecuteParams,
            result=types.ExecuteResult,
        ),
        "get_task": Method(
            request=GetTask,
            decode=decode_get,
            encode=encode_outcome,
            params=types.GetParams,
            result=types.ExecuteResult,
        ),
        "get_agent_card": Method(
            request=GetExtendedCard,
            decode=decode_card,
            encode=encode_extended_card,
            params=types.CardParams,
            result=AgentCard,
        ),
    },
    column=COLUMN,
    encode_error=encode_error,
    error_type=types.ErrorObject,
    encode_frame=lambda frame, history_length: None,
    words=words,
    refusal=refusal,
    needs_id=True,
    answers_early=True,
)
ROW = Row(languages=(LANGUAGE,), choose=by_method, spelling=re.compile(r"[a-z]+(_[a-z0-9]+)+"))
"""The row of methods that are spelled with underscores."""
