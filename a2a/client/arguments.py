"""Arguments that programs give to a client. A wrong one is refused in one sentence, before anything is sent."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from a2a.mistakes import WrongValue, check_part
from a2a.requests import Request, SendMessage
from a2a.states import TaskState
from a2a.types import Message, Part


def check_kind(name: str, value: Any, kind: type, example: str) -> None:
    """Raise TypeError unless an argument is of this type, or None, which stands for the default."""
    if not (value is None or isinstance(value, kind)):
        raise TypeError(f"{name} must be a {kind.__name__}, such as {example}, not {type(value).__name__}")


def check_credentials(credentials: Any) -> None:
    """Raise TypeError unless the credentials have the methods of Credentials, or are None."""
    methods = (getattr(credentials, "headers", None), getattr(credentials, "refused", None))
    if credentials is not None and not all(map(callable, methods)):
        kind = type(credentials).__name__
        raise TypeError(f"credentials must be an object such as ApiKey(key) or Bearer(token) of a2a.client, not {kind}")


def check_seconds(name: str, seconds: Any) -> None:
    """Raise TypeError unless a time limit is a number."""
    if not isinstance(seconds, int | float):
        raise TypeError(f"{name} of Timeouts must be a number of seconds, not {type(seconds).__name__}")


def check_limits(limits: Any) -> None:
    """Raise TypeError unless the limits of single operations are numbers in a mapping."""
    if not isinstance(limits, Mapping):
        raise TypeError(f"methods of Timeouts must be a dict such as {{SendMessage: 600}}, not {type(limits).__name__}")
    for request, seconds in limits.items():
        check_seconds(f"methods[{getattr(request, '__name__', repr(request))}]", seconds)


def state_of(state: Any) -> TaskState | None:
    """Return the state that a filter names by its value or by its text. Raises ValueError."""
    try:
        return None if state is None else TaskState(state)
    except ValueError:
        names = ", ".join(TaskState)
        raise ValueError(f"state must be a TaskState of a2a.states or its text ({names}), not {state!r}") from None


def check_time(name: str, time: Any) -> None:
    """Raise TypeError unless an argument is a time, or None."""
    if not (time is None or isinstance(time, datetime)):
        example = "datetime(2026, 3, 2, tzinfo=UTC)"
        raise TypeError(f"{name} must be a datetime of Python, such as {example}, not {type(time).__name__}")


def check_message(request: Request) -> None:
    """Raise TypeError if the request sends a message with a wrong part."""
    if isinstance(request, SendMessage):
        check_parts(request.message)


def check_parts(message: Message) -> None:
    """Raise TypeError unless each part of a message has one content. Languages would send only one of several."""
    if not isinstance(message.parts, tuple | list):
        kind = type(message.parts).__name__
        raise TypeError(f"the parts of a message must be a tuple of Part values of a2a.types, not {kind}")
    for place, part in enumerate(message.parts):
        if not isinstance(part, Part):
            kind = type(part).__name__
            raise TypeError(
                f"parts[{place}] of a message must be a Part of a2a.types, such as Part(text=...), not {kind}"
            )
        try:
            check_part(part)
        except WrongValue as error:
            raise TypeError(f"the message {error} (parts[{place}])") from None
