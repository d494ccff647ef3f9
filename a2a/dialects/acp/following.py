"""Following in ACP: the subscription to a task, and the notifications that deliveries contain.

A notification is a call of `task.notification` without an id. Its data depends on its event: a task, a message or an
artifact.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import Annotated, Any, assert_never

import orjson
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from a2a.answers import Answer, Frame
from a2a.dialects.acp.tasks import TaskResult, encode_answer
from a2a.dialects.acp.values import (
    NOTES,
    STATES,
    encode_artifact,
    encode_message,
    encode_task,
    time_of,
)
from a2a.dialects.json.json_1_0 import document, event_of
from a2a.dialects.webhook_fields import MAX_URL, SIGNING_SCHEME, Url, check_secret
from a2a.documents import EventDocument, EventKind, TaskDocument
from a2a.errors import InvalidParams
from a2a.events import ArtifactAdded, Event, MessageAdded, StatusChanged, TaskCreated
from a2a.language import Method, Push
from a2a.notices import Notice, filter_of, names_of, notices_of
from a2a.params import Text, check, read_id, read_whole, rule, write_time
from a2a.requests import CreatePushConfig, FollowTask
from a2a.states import QUIET
from a2a.types import Json, Message, PushConfig, Status

NOTIFICATION = "task.notification"
DEFAULT = (Notice.STATUS_CHANGE, Notice.COMPLETED, Notice.FAILED)
"""The events of a subscription that names none."""
Events = Annotated[list[Annotated[str, rule(enum=[notice.value for notice in Notice])]], rule(minItems=1)]

# ------------------------------------------------------------ subscriptions


class SubscribeParams(Struct, rename="camel"):
    task_id: Text
    callback_url: Annotated[Url, rule(format="uri")]
    events: Events | None = None
    secret: str | None = None
    """A secret of Standard Webhooks, which signs the deliveries in place of one that the server makes."""


class Subscription(Struct, rename="camel"):
    """A SubscriptionObject."""

    subscription_id: str
    task_id: str
    callback_url: str
    events: Events
    active: bool
    created_at: Annotated[str, rule(format="date-time")] | UnsetType = UNSET


class SubscriptionResult(Struct):
    """The result of a subscription."""

    type: Annotated[str, rule(enum=["subscription"])]
    subscription: Subscription


def decode_subscribe(params: Any) -> CreatePushConfig:
    """Decode the params of tasks.subscribe. Raises InvalidParams."""
    wire = check(params, SubscribeParams)
    url, secret = wire["callbackUrl"], wire.get("secret")
    if not 0 < len(url) <= MAX_URL:
        raise InvalidParams(("callbackUrl", f"must have 1 to {MAX_URL} characters"))
    if secret is not None:
        check_secret(secret, "secret")
    config = PushConfig(
        url=url,
        schemes=() if secret is None else (SIGNING_SCHEME,),
        credentials=secret,
        notices=read_events(wire.get("events")),
        path="callbackUrl",
    )
    return CreatePushConfig(task_id=read_id(wire, "taskId"), config=config)


def read_events(names: list[str] | None) -> int:
    """Return the filter of a subscription. Raises InvalidParams for an unknown event, and for no event at all."""
    if names is None:
        return filter_of(DEFAULT)
    if not names:
        raise InvalidParams(("events", "must have at least one event; leave it out for the default"))
    for place, name in enumerate(names):
        if name not in Notice.__members__:
            raise InvalidParams((f"events[{place}]", f"must be one of {', '.join(Notice)}"))
    return filter_of(map(Notice, names))


def encode_subscription(config: PushConfig) -> bytes:
    """Return a subscription in its wrapper."""
    subscription: Json = {
        "subscriptionId": config.id,
        "taskId": config.task_id,
        "callbackUrl": config.url,
        "events": names_of(config.notices),
        "active": True,
    }
    if config.created_at is not None:
        subscription["createdAt"] = write_time(config.created_at)
    return orjson.dumps({"type": "subscription", "subscription": subscription})


# ------------------------------------------------------------ notifications


def encode_push(event: EventDocument, task: Callable[[], TaskDocument]) -> bytes:
    """Return the notification of an event for a webhook. The end of a task and a question have the whole task as of the
    event.
    """
    return _call(_params(event, task))


def encode_notification(event: EventDocument) -> bytes:
    """Return the notification of an event in a stream, with its sequence number."""
    return _call(_params(event) | {"sequence": event.seq})


def _call(params: Json) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "method": NOTIFICATION, "params": params})


def _params(event: EventDocument, task: Callable[[], TaskDocument] | None = None) -> Json:
    """Return the params of a notification."""
    return {
        "taskId": event.task_id,
        "event": _notice(event),
        "timestamp": _timestamp(event),
        "data": _data(event, task),
    }


def _notice(event: EventDocument) -> str:
    return event.notice or notices_of(event.kind, event.state, event.payload)[0].value


def _timestamp(event: EventDocument) -> str:
    """Return the time of the event. Its microseconds are the number of the event, since receivers take notifications of
    a task with the same event and time for one.
    """
    time = event.at or time_of(event.task_id)
    if time is None:
        raise ValueError(f"event {event.task_id}/{event.seq} has no time")
    return f"{write_time(time)[:-1]}{event.seq % 1000:03}Z"


def _data(event: EventDocument, task: Callable[[], TaskDocument] | None) -> Json:
    value = event_of(event)
    match Notice(_notice(event)):
        case Notice.NEW_ARTIFACT:
            return _artifact(value)
        case Notice.NEW_MESSAGE:
            return encode_message(_message(value), "")
        case Notice.STATUS_CHANGE | Notice.COMPLETED | Notice.FAILED:
            if task is not None and event.state in QUIET:
                return encode_task(task())
            return _task(event, value)
        case notice:
            assert_never(notice)


def _artifact(event: Event) -> Json:
    """Return the parts that are new. The metadata of a chunk says whether it continues the artifact, and ends it."""
    if not isinstance(event, ArtifactAdded):
        raise TypeError("the event has no artifact")
    flags = {"append": event.append, "lastChunk": event.last_chunk}
    metadata = (event.artifact.metadata or {}) | {name: True for name, flag in flags.items() if flag}
    return encode_artifact(replace(event.artifact, metadata=metadata or None), "")


def _message(event: Event) -> Message:
    match event:
        case MessageAdded(message=message) | StatusChanged(status=Status(message=Message() as message)):
            return message
        case TaskCreated(task=task) if task.history:
            return task.history[-1]
        case _:
            raise TypeError("the event has no message")


def _task(document_of_event: EventDocument, event: Event) -> Json:
    """Return a task with its new status, and with the message of the event alone."""
    task_id = document_of_event.task_id
    match event:
        case TaskCreated(task=task):
            return encode_task(document(task, document_of_event.seq))
        case StatusChanged(status=status):
            messages = [] if status.message is None else [status.message]
        case MessageAdded(message=message, status=Status() as status):
            messages = [message]
        case _:
            raise TypeError("the event has no status")
    out: Json = {
        "taskId": task_id,
        "status": STATES[status.state],
        "createdAt": write_time(time_of(task_id) or status.timestamp),
        "updatedAt": write_time(status.timestamp),
    }
    if messages:
        out["messages"] = [encode_message(message, "") for message in messages]
    return out | ({"metadata": NOTES[status.state]} if status.state in NOTES else {})


def pushes(kind: EventKind, state: str | None) -> bool:
    """Return whether the event has a notification: each one has, and filters decide."""
    return True


def sign(secret: str, body: bytes) -> dict[str, str]:
    """Return the signature of a body, in both forms that clients know: its HMAC-SHA-256 with the text of the secret."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"x-acp-signature": digest, "X-Webhook-Signature": f"sha256={digest}"}


class FollowParams(Struct, rename="camel"):
    task_id: Text
    events: Events | None = None
    after_sequence: Annotated[int | None, rule(minimum=0)] = None
    """The sequence of the last notification that the caller has seen, for sockets; Last-Event-ID over HTTP."""


def decode_follow(params: Any) -> FollowTask:
    """Decode the params of tasks.subscribe without a callbackUrl. Raises InvalidParams."""
    wire = check(params, FollowParams)
    after = read_whole(wire.get("afterSequence"), "afterSequence")
    return FollowTask(id=read_id(wire, "taskId"), notices=read_events(wire.get("events")), after=after, shows_end=True)


def encode_first(frame: Frame, history_length: int | None) -> bytes | None:
    """Return the first frame of a stream: the task, as the result of the call. All later ones are notifications."""
    return encode_answer(Answer(task=frame)) if isinstance(frame, TaskDocument) else None


METHODS = {
    "tasks.subscribe": Method(
        stream_unless="callbackUrl",
        as_stream=Method(
            request=FollowTask, decode=decode_follow, encode=encode_answer, params=FollowParams, result=TaskResult
        ),
        request=CreatePushConfig,
        decode=decode_subscribe,
        encode=encode_subscription,
        params=SubscribeParams,
        result=SubscriptionResult,
    ),
}
"""The methods that follow tasks."""
PUSH = Push(
    encode=encode_push,
    has=pushes,
    media="application/json",
    filters=True,
    one_for_address=True,
    sign=sign,
)
"""The deliveries of ACP."""
