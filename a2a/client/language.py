"""A wire language on the client's side: it encodes requests as params, and decodes results into values. A language is a
value in its own file."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from a2a.client.errors import InvalidResponse
from a2a.client.reading import check_types
from a2a.client.refusals import A2A, Numbers
from a2a.client.updates import Update
from a2a.errors import InvalidParams
from a2a.language import Route
from a2a.requests import Request, SendMessage
from a2a.types import Json

Value = TypeVar("Value")


class Operation(Struct, frozen=True, kw_only=True):
    """An operation in one language."""

    method: str
    encode: Callable[[Any], Json]
    """Encodes the request as params."""
    decode: Callable[[Any], Any]
    """Decodes the result. Any exception means that the result is invalid."""
    page: str = ""
    """The path of a plain GET beside the address, for an operation without a method."""


class ClientLanguage(Struct, frozen=True, kw_only=True):
    """One wire language."""

    name: str
    version: str
    """Major.Minor, as on cards."""
    headers: Mapping[str, str]
    """The headers of every call: that of the version, if the language has one."""
    extensions_header: str
    """The header in which calls request extensions."""
    operations: Mapping[type[Request], Operation]
    update: Callable[[Any], Update]
    """Decodes one event of a stream. Any exception means that the event is invalid."""
    begins_with_task: bool = True
    """True if each stream begins with the task as it is."""
    default_webhook: bool = False
    """True if a webhook without an id is the task's default, which a second registration replaces."""
    question_ends: bool = False
    """True if a question of the agent ends every stream, and not only that of a message."""
    routes: tuple[Route, ...] = ()
    """The verbs and paths of its methods; empty for a language that is always in an envelope."""
    prefix: str = ""
    """The prefix of the paths."""
    key_header: str = ""
    """The header with the id of a message, the same in all attempts; empty where the params have it."""
    numbers: Numbers = A2A
    """The numbers of its errors in an envelope."""
    follow_up: Operation | None = None
    """The operation of a message to an existing task; None if it is that of every message."""
    polls: bool = False
    """True if no answer waits for an agent, so that the client reads the task until it has ended or is interrupted."""
    has_message_ids: bool = True
    """True if a server recognises a message that is sent again by its id."""
    seconds: Mapping[type[Request], float] = {}
    """The usual time limits of its calls, where the caller sets none for the operation."""

    def operation(self, request: Request) -> Operation:
        """Return the operation of a request. Raises LookupError."""
        if self.follow_up and type(request) is SendMessage and request.message.task_id is not None:
            return self.follow_up
        # Exactly this class: the operation of its parent would leave out what the class adds, such as a phase.
        if type(request) in self.operations:
            return self.operations[type(request)]
        raise LookupError(f"{self.name} has no operation for {type(request).__name__}")


def decoded(decode: Callable[[Any], Value], wire: Any, what: str, where: str) -> Value:
    """Decode JSON from a server. Raises InvalidResponse."""
    try:
        value = decode(wire)
        check_types(value.event if isinstance(value, Update) else value)
        return value
    except InvalidParams as error:
        why = error.message
    except (
        msgspec.ValidationError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        RecursionError,
    ) as error:
        why = f"{type(error).__name__}: {error}"
    raise InvalidResponse(f"{what} is not what the protocol says ({why[:200]})", where=where)
