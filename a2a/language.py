"""The fields of a wire language. A new one is one file that makes one of these values."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from a2a.answers import Frame
from a2a.documents import EventDocument, EventKind, TaskDocument
from a2a.errors import Error
from a2a.requests import Request
from a2a.types import Card, Task


class Method(Struct, frozen=True, kw_only=True):
    """A method of the wire: how its params become a request, and its result JSON."""

    request: type[Request]
    """The type that decode returns. Its scope is checked before the params are looked at."""
    decode: Callable[[Any], Request]
    """Params as parsed (UNSET when absent) to a request. Raises InvalidParams."""
    encode: Callable[[Any], bytes]
    """The Result of the operation to JSON."""


class Route(Struct, frozen=True, kw_only=True):
    """A method asked for by verb and path: the members of path, query and body are its params."""

    verb: str
    path: str
    """A template such as /tasks/{id}:cancel; what stands for a name in braces holds no slash."""
    method: str
    query: type[Struct] | None = None
    """Whose plain members (text, numbers, truth) may stand in the query."""


def same(error: Error) -> Error:
    return error


class Dialect(Struct, frozen=True, kw_only=True):
    """One wire language and version."""

    name: str
    """The name shown to operators, such as a2a-1.0."""
    version: str
    """The value of the A2A-Version header."""
    methods: dict[str, Method]
    codes: dict[type[Error], int]
    """A code for each error of a2a/errors.py."""
    encode_error: Callable[[Error, int], dict[str, Any]]
    """An error and its code to the JSON-RPC error object."""
    encode_frame: Callable[[Frame, int | None], bytes | None]
    """One event of a stream (the second value cuts the history) to JSON; None if this dialect hides it."""
    encode_push: Callable[[EventDocument, Callable[[], TaskDocument]], bytes | None]
    """The body of a webhook's delivery for an event, given how to get the task as of it; None if it has none."""
    pushes: Callable[[EventKind, str | None], bool]
    """Whether an event of that kind, which sets that state, has a delivery."""
    push_type: str
    """The media type of that body."""
    encode_card: Callable[[Card], dict[str, Any]]
    encode_task: Callable[[Task], dict[str, Any]]
    extensions_header: str
    """The header that names the extensions which an answer was made with."""
    on_cards: bool = True
    """Cards list it among what is spoken at their URL; else it has a card of its own."""
    pushes_task: bool = False
    """The body of a delivery is the whole task: a later one says all that an earlier one says."""
    default_webhook: bool = False
    """A webhook that is registered without an id is its task's default, known by the task's id."""
    words: Callable[[Error], Error] = same
    """Rewrites an operation's error in the words of this dialect."""
    routes: tuple[Route, ...] = ()
    """Its methods over REST. Of two templates that fit a path the first is meant."""

    def code(self, error: Error) -> int:
        """The number of an error."""
        for ancestor in type(error).__mro__:
            if ancestor in self.codes:
                return self.codes[ancestor]
        raise LookupError(f"{self.name} has no code for {type(error).__name__}: add it to its table")

    def error(self, error: Error) -> dict[str, Any]:
        """The JSON-RPC error object."""
        return self.encode_error(error, self.code(error))
