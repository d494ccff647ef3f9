"""A wire language the other way round: requests become params, and results become values. A new one is a file with
such a value."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from a2a.client.errors import InvalidResponse
from a2a.client.reading import check_types
from a2a.client.updates import Update
from a2a.errors import InvalidParams
from a2a.language import Route
from a2a.requests import Request
from a2a.types import Json

Value = TypeVar("Value")


class Operation(Struct, frozen=True, kw_only=True):
    """An operation in one language."""

    method: str
    encode: Callable[[Any], Json]
    """Turns the request into params."""
    decode: Callable[[Any], Any]
    """Turns the result into a value; any exception says that it is not one."""
    page: str = ""
    """The path of a plain GET beside the address, for what is not a method."""


class ClientLanguage(Struct, frozen=True, kw_only=True):
    """One wire language."""

    name: str
    version: str
    """Major.Minor, as on cards."""
    headers: Mapping[str, str]
    """Headers of every call: the version, where the language has that header."""
    extensions_header: str
    """The header that names the extensions which calls ask for."""
    operations: Mapping[type[Request], Operation]
    update: Callable[[Any], Update]
    """Turns one event of a stream into an update; any exception says that it is not one."""
    begins_with_task: bool = True
    """Each stream begins with the task as it is."""
    default_webhook: bool = False
    """A webhook that is registered without an id is the task's default, also when it is registered again."""
    question_ends: bool = False
    """A question of the agent ends each stream, not only that of a message."""
    routes: tuple[Route, ...] = ()
    """Verbs and paths of its methods; empty for a language that is always in an envelope."""
    prefix: str = ""
    """The path before those of the routes."""

    def operation(self, request: Request) -> Operation:
        """Return the operation of a request. Raises LookupError."""
        for kind in type(request).__mro__:
            if kind in self.operations:
                return self.operations[kind]
        raise LookupError(f"{self.name} has no operation for {type(request).__name__}")


def decoded(decode: Callable[[Any], Value], wire: Any, what: str, where: str) -> Value:
    """Return the value of JSON from a server. Raises InvalidResponse."""
    try:
        value = decode(wire)
        check_types(value.event if isinstance(value, Update) else value)
        return value
    except InvalidParams as error:
        why = error.message
    except (msgspec.ValidationError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        why = f"{type(error).__name__}: {error}"
    raise InvalidResponse(f"{what} is not what the protocol says ({why[:200]})", where=where)
