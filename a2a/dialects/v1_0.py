"""A2A 1.0 over JSON-RPC and REST: answers, events, routes and methods.

Its params are in params_1_0.py, its cards in cards_1_0.py, its errors in errors_1_0.py, and its data model is in
json/json_1_0.py.
"""

from collections.abc import Callable
from functools import partial
from typing import assert_never

import orjson

from a2a.answers import Answer, Frame, TaskPage
from a2a.dialects import webhooks
from a2a.dialects.cards_1_0 import encode_card, encode_extended_card
from a2a.dialects.errors_1_0 import COLUMN, REST_STATUSES, encode_error, encode_rest_error
from a2a.dialects.json.json_1_0 import dumps, encode_message, status_frame
from a2a.dialects.params_1_0 import (
    CancelParams,
    GetParams,
    ListParams,
    PagingParams,
    SendParams,
    TaskParams,
    TenantParams,
    decode_cancel,
    decode_extended_card,
    decode_get,
    decode_list,
    decode_send,
    decode_subscribe,
)
from a2a.dialects.schemas import answers_1_0 as types
from a2a.documents import Encoded, EventDocument, EventKind, TaskDocument, enclose, join_pieces
from a2a.extensions import HEADER
from a2a.language import Dialect, Method, Push, Rest, Route
from a2a.requests import CancelTask, GetExtendedCard, GetTask, ListTasks, SendMessage, StreamMessage, SubscribeToTask
from a2a.types import Message


def encode_answer(answer: Answer) -> Encoded:
    """Return the result of a send: {"task": ...} or {"message": ...}."""
    if answer.task is not None:
        return enclose(b'{"task":', answer.task.json(answer.history_length), b"}")
    if answer.message is not None:
        return b'{"message":' + orjson.dumps(encode_message(answer.message)) + b"}"
    raise ValueError("an answer has a task or a message")


def encode_bare_task(answer: Answer) -> Encoded:
    """Return a task without a member around it."""
    if answer.task is None:
        raise ValueError("the answer has no task")
    return answer.task.json(answer.history_length)


def encode_page(page: TaskPage) -> Encoded:
    """Return a page with all four members. pageSize is the number of tasks on it (docs/protocol.md#listing)."""
    show_empty = page.include_artifacts
    tasks = [text for task in page.tasks for text in (b",", task.json(page.history_length, show_empty=show_empty))]
    sizes = f'"pageSize":{len(page.tasks)},"totalSize":{page.total_size}'
    end = f'],"nextPageToken":{dumps(page.next_page_token)},{sizes}}}'
    return join_pieces([b'{"tasks":[', *tasks[1:], end.encode()])


def encode_frame(frame: Frame, history_length: int | None) -> bytes | None:
    """Return a StreamResponse (A2A 1.0, 3.2.3); None for a caller's message that sets no status."""
    match frame:
        case TaskDocument():
            return bytes(enclose(b'{"task":', frame.json(history_length), b"}"))
        case EventDocument(kind="message"):
            return status_frame(frame)
        case EventDocument():
            return frame.json()
        case Message():
            return b'{"message":' + orjson.dumps(encode_message(frame)) + b"}"
        case _:
            assert_never(frame)


def encode_push(event: EventDocument, task: Callable[[], TaskDocument]) -> bytes | None:
    """Return the body of a delivery: the StreamResponse of the event, as on a stream (A2A 1.0, 4.3.3)."""
    return encode_frame(event, None)


def pushes(kind: EventKind, state: str | None) -> bool:
    """Return whether a stream shows the event. Of a caller's message, a stream shows only the status that it sets."""
    return kind != "message" or state is not None


_CONFIGS = "/tasks/{taskId}/pushNotificationConfigs"
ROUTES = (
    Route(verb="POST", path="/message:send", method="SendMessage", query=TenantParams),
    Route(verb="POST", path="/message:stream", method="SendStreamingMessage", query=TenantParams),
    Route(verb="GET", path="/tasks", method="ListTasks", query=ListParams),
    Route(verb="POST", path="/tasks/{id}:cancel", method="CancelTask", query=TenantParams),
    # The specification says POST in its text and GET in the protobuf (docs/protocol.md#methods-and-paths).
    Route(verb="POST", path="/tasks/{id}:subscribe", method="SubscribeToTask", query=TenantParams),
    Route(verb="GET", path="/tasks/{id}:subscribe", method="SubscribeToTask", query=TenantParams),
    Route(verb="GET", path="/tasks/{id}", method="GetTask", query=GetParams),
    Route(verb="POST", path=_CONFIGS, method="CreateTaskPushNotificationConfig", query=TenantParams),
    Route(verb="GET", path=_CONFIGS, method="ListTaskPushNotificationConfigs", query=PagingParams),
    Route(verb="GET", path=_CONFIGS + "/{id}", method="GetTaskPushNotificationConfig", query=TenantParams),
    Route(verb="DELETE", path=_CONFIGS + "/{id}", method="DeleteTaskPushNotificationConfig", query=TenantParams),
    Route(verb="GET", path="/extendedAgentCard", method="GetExtendedAgentCard", query=TenantParams),
)


METHODS = {
    "SendMessage": Method(
        request=SendMessage,
        decode=partial(decode_send, SendMessage),
        encode=encode_answer,
        params=SendParams,
        result=types.SEND_RESULT,
    ),
    "SendStreamingMessage": Method(
        request=StreamMessage,
        decode=partial(decode_send, StreamMessage),
        encode=encode_answer,
        params=SendParams,
        result=types.EVENT,
    ),
    "GetTask": Method(request=GetTask, decode=decode_get, encode=encode_bare_task, params=GetParams, result=types.Task),
    "ListTasks": Method(
        request=ListTasks, decode=decode_list, encode=encode_page, params=ListParams, result=types.TaskPage
    ),
    "CancelTask": Method(
        request=CancelTask, decode=decode_cancel, encode=encode_bare_task, params=CancelParams, result=types.Task
    ),
    "SubscribeToTask": Method(
        request=SubscribeToTask,
        decode=decode_subscribe,
        encode=encode_bare_task,
        params=TaskParams,
        result=types.EVENT,
    ),
    **webhooks.METHODS,
    "GetExtendedAgentCard": Method(
        request=GetExtendedCard,
        decode=decode_extended_card,
        encode=encode_extended_card,
        params=TenantParams,
        result=types.AgentCard,
    ),
}
DIALECT = Dialect(
    name="a2a-1.0",
    version="1.0",
    methods=METHODS,
    column=COLUMN,
    encode_error=encode_error,
    error_type=types.Error,
    encode_frame=encode_frame,
    encode_card=encode_card,
    extensions_header=HEADER,
    push=Push(encode=encode_push, has=pushes, media="application/a2a+json"),
    rest=Rest(
        routes=ROUTES,
        media="application/a2a+json",
        statuses=REST_STATUSES,
        encode_error=encode_rest_error,
        error_type=types.RestError,
    ),
)
