"""A2A 0.3.0 over JSON-RPC: answers, events, errors and methods.

Its params are in params_0_x.py, its card is in cards_0_3.py, and its data model is in json/json_0_x.py.
"""

from collections.abc import Callable
from functools import partial
from typing import assert_never

import orjson

from a2a.answers import Answer, Frame, TaskPage
from a2a.dialects import errors_1_0, webhooks
from a2a.dialects.cards_0_3 import encode_card, encode_extended_card
from a2a.dialects.errors_1_0 import reason_of
from a2a.dialects.json.json_0_x import encode_event, encode_message, encode_task
from a2a.dialects.json.json_1_0 import decode_task, event_of
from a2a.dialects.params_0_x import (
    GET,
    OF_TASK,
    ListParams,
    NoParams,
    SendParams,
    decode_cancel,
    decode_extended_card,
    decode_get,
    decode_list,
    decode_resubscribe,
    decode_send,
)
from a2a.dialects.schemas import answers_0_x as types
from a2a.documents import EventDocument, EventKind, TaskDocument
from a2a.errors import (
    Error,
    ExtendedCardNotConfigured,
    ExtensionSupportRequired,
    InvalidParams,
    InvalidRequest,
    UnsupportedOperation,
)
from a2a.extensions import OLD_HEADER
from a2a.language import Dialect, Method, Push
from a2a.requests import CancelTask, GetExtendedCard, GetTask, ListTasks, SendMessage, StreamMessage, SubscribeToTask
from a2a.types import Json, Message

COLUMN = errors_1_0.COLUMN | {ExtensionSupportRequired: errors_1_0.COLUMN[InvalidRequest]}
"""The cells of 1.0. 0.x has none for a required extension, so that is an invalid request (docs/protocol.md#sending)."""


def _from_document(document: TaskDocument, history_length: int | None) -> Json:
    """Return a task in the JSON of 0.x."""
    return encode_task(decode_task(orjson.loads(bytes(document.json(history_length)))))


def encode_answer(answer: Answer) -> bytes:
    """Return a task or a message, whose `kind` says which."""
    if answer.task is not None:
        return orjson.dumps(_from_document(answer.task, answer.history_length))
    if answer.message is not None:
        return orjson.dumps(encode_message(answer.message))
    raise ValueError("an answer has a task or a message")


def encode_page(page: TaskPage) -> bytes:
    """Return a page. If the caller requested artifacts, an empty list of them is shown too, as in 1.0."""
    empty: Json = {"artifacts": []} if page.include_artifacts else {}
    tasks = [empty | _from_document(task, page.history_length) for task in page.tasks]
    return orjson.dumps({"tasks": tasks, "nextCursor": page.next_page_token, "totalSize": page.total_size})


def encode_frame(frame: Frame, history_length: int | None) -> bytes | None:
    """Return one event of a stream; None for a caller's message that sets no status."""
    wire = frame_members(frame, history_length)
    return None if wire is None else orjson.dumps(wire)


def frame_members(frame: Frame, history_length: int | None) -> Json | None:
    """Return the members of one event of a stream, whose `kind` says which; None for a message that sets no status."""
    match frame:
        case TaskDocument():
            return _from_document(frame, history_length)
        case EventDocument(task_id=task_id, context_id=context_id):
            return encode_event(event_of(frame), task_id=task_id, context_id=context_id)
        case Message():
            return encode_message(frame)
        case _:
            assert_never(frame)


def encode_push(event: EventDocument, task: Callable[[], TaskDocument]) -> bytes | None:
    """Return the body of a delivery: the whole task, for each change of its status (docs/protocol.md#deliveries)."""
    return encode_frame(task(), None) if pushes(event.kind, event.state) else None


def pushes(kind: EventKind, state: str | None) -> bool:
    """Return whether the event sets a status (docs/protocol.md#deliveries)."""
    return state is not None


def words(error: Error) -> Error:
    """Return an operation's error, which is in the words of 1.0, in the words of 0.x.

    If the extended card is switched off, 1.0 has UnsupportedOperation (A2A 1.0.1, 3.3.4), and 0.3 has
    ExtendedCardNotConfigured (A2A 0.3.0, 8.2).
    """
    if isinstance(error, UnsupportedOperation) and error.facts.get("capability") == "extendedAgentCard":
        return ExtendedCardNotConfigured(**error.facts)
    if not isinstance(error, InvalidParams):
        return error
    names = {"pageToken": "cursor"}
    return InvalidParams(*((names.get(field, field), text) for field, text in error.violations), **error.facts)


def encode_error(error: Error, code: int) -> Json:
    """Return the error object. `data` has the reason and the facts, and is absent if there is only the reason."""
    violations = error.violations if isinstance(error, InvalidParams) else ()
    data: Json = {"reason": reason_of(error), **error.facts}
    if violations:
        data["violations"] = [{"field": field, "description": text} for field, text in violations]
    return {"code": code, "message": error.full_message} | ({"data": data} if len(data) > 1 else {})


METHODS = {
    "message/send": Method(
        request=SendMessage,
        decode=partial(decode_send, SendMessage),
        encode=encode_answer,
        params=SendParams,
        result=types.SEND_RESULT,
    ),
    "message/stream": Method(
        request=StreamMessage,
        decode=partial(decode_send, StreamMessage),
        encode=encode_answer,
        params=SendParams,
        result=types.EVENT,
    ),
    "tasks/get": Method(request=GetTask, decode=decode_get, encode=encode_answer, params=GET, result=types.Task),
    "tasks/list": Method(
        request=ListTasks, decode=decode_list, encode=encode_page, params=ListParams, result=types.TaskPage
    ),
    "tasks/cancel": Method(
        request=CancelTask, decode=decode_cancel, encode=encode_answer, params=OF_TASK, result=types.Task
    ),
    "tasks/resubscribe": Method(
        request=SubscribeToTask,
        decode=decode_resubscribe,
        encode=encode_answer,
        params=OF_TASK,
        result=types.EVENT,
    ),
    **webhooks.OLD_METHODS,
    "agent/getAuthenticatedExtendedCard": Method(
        request=GetExtendedCard,
        decode=decode_extended_card,
        encode=encode_extended_card,
        params=NoParams,
        result=types.AgentCard,
    ),
}
DIALECT = Dialect(
    name="a2a-0.3",
    version="0.3",
    methods=METHODS,
    column=COLUMN,
    encode_error=encode_error,
    error_type=types.Error,
    errors_as_stream=True,
    words=words,
    encode_frame=encode_frame,
    encode_card=encode_card,
    extensions_header=OLD_HEADER,
    push=Push(encode=encode_push, has=pushes, media="application/json", whole_task=True, default_id=True),
)
