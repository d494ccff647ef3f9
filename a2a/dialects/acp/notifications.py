"""The notifications of remote agents in ACP: the params of task.notification, and the result of one that is a call."""

from typing import Annotated, Any

import orjson
from msgspec import Struct

from a2a.answers import Result
from a2a.dialects.acp.following import NOTIFICATION
from a2a.errors import InvalidParams
from a2a.language import Method
from a2a.notices import Notice
from a2a.params import TIME, Text, check, read_id, read_time, rule
from a2a.requests import NotifyOfTask
from a2a.types import Json


class NotificationParams(Struct, rename="camel"):
    task_id: Text
    event: Annotated[str, rule(enum=[notice.value for notice in Notice])]
    timestamp: Annotated[str, rule(pattern=TIME)]
    data: Json | None = None
    """A task, a message or an artifact. It is recorded with the call, and not used."""


class NotificationResult(Struct):
    """The result of task.notification."""

    type: Annotated[str, rule(enum=["notification"])]
    message: str


def decode_notification(params: Any) -> NotifyOfTask:
    """Decode the params of task.notification. Raises InvalidParams."""
    wire = check(params, NotificationParams)
    if wire["event"] not in Notice.__members__:
        raise InvalidParams(("event", f"must be one of {', '.join(Notice)}"))
    read_time(wire["timestamp"], "timestamp")
    return NotifyOfTask(remote_id=read_id(wire, "taskId"))


def encode_receipt(result: Result) -> bytes:
    """Return the result, which is the same for every task."""
    return orjson.dumps({"type": "notification", "message": "The notification has arrived"})


METHODS = {
    NOTIFICATION: Method(
        request=NotifyOfTask,
        decode=decode_notification,
        encode=encode_receipt,
        params=NotificationParams,
        result=NotificationResult,
    ),
}
"""The method of notifications."""
