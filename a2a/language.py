"""Wire languages: what each has, and what a dialect of A2A adds. A new language is a file with such a value."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from a2a.answers import Frame
from a2a.documents import EventDocument, EventKind, TaskDocument
from a2a.errors import Error, entry
from a2a.extensions import HEADER, OLD_HEADER, asked
from a2a.requests import Request
from a2a.types import Card

VERSION_HEADER = "A2A-Version"
"""The header of the version that a call is in, or an answer (A2A 1.0.1, 14.2.1)."""


class Method(Struct, frozen=True, kw_only=True):
    """A method of the wire: how its params become a request, and its result JSON."""

    request: type[Request]
    """The type that decode returns. Its scope is checked before the params are looked at."""
    decode: Callable[[Any], Request]
    """Turns params as parsed (UNSET when absent) into a request. Raises InvalidParams."""
    encode: Callable[[Any], bytes]
    """Turns the Result of the operation into JSON."""


class Route(Struct, frozen=True, kw_only=True):
    """A method asked for by verb and path: the members of path, query and body are its params."""

    verb: str
    path: str
    """A template such as /tasks/{id}:cancel; a name in braces stands for text without a slash."""
    method: str
    query: type[Struct] | None = None
    """The struct whose plain members (text, numbers, truth) may stand in the query."""


class Rest(Struct, frozen=True, kw_only=True):
    """The form of a language without an envelope, where verb and path name the method."""

    routes: tuple[Route, ...]
    """The table: a path leads to the first template that fits."""
    media: str
    """The media type of answers."""
    statuses: dict[type[Error], tuple[int, str]]
    """The HTTP status and the gRPC name of each error."""
    encode_error: Callable[[Error, int, str], dict[str, Any]]
    """Turns an error, its HTTP status and its gRPC name into the body of the answer."""


class Push(Struct, frozen=True, kw_only=True):
    """The deliveries of a language to webhooks."""

    encode: Callable[[EventDocument, Callable[[], TaskDocument]], bytes | None]
    """Makes the body for an event, given how to get the task as of it; None if the event has no delivery."""
    has: Callable[[EventKind, str | None], bool]
    """Tells whether an event of that kind, which sets that state, has a delivery."""
    media: str
    """The media type of the body."""
    whole_task: bool = False
    """Each body is the whole task: a later one says all that an earlier one says."""
    default_id: bool = False
    """A webhook that is registered without an id is its task's default, and has the task's id."""


def same(error: Error) -> Error:
    return error


class Language(Struct, frozen=True, kw_only=True):
    """One wire language."""

    name: str
    """The name by which exchanges and webhooks remember it, such as a2a-1.0."""
    methods: dict[str, Method]
    codes: dict[type[Error], int]
    """The number of each error of a2a/errors.py."""
    encode_error: Callable[[Error, int], dict[str, Any]]
    """Turns an error and its number into the error object of an envelope."""
    encode_frame: Callable[[Frame, int | None], bytes | None]
    """Turns one event of a stream (the second value cuts the history) into JSON; None for an event it hides."""
    statuses: dict[type[Error], int] = {}
    """HTTP statuses of errors in an envelope; other errors are a 200."""
    words: Callable[[Error], Error] = same
    """Rewrites an operation's error in the words of this language."""
    errors_as_stream: bool = False
    """Clients that ask for a stream, without naming a version, expect its refusal as the one event of a stream."""
    rest: Rest | None = None
    """None for a language that is always in an envelope."""
    push: Push | None = None
    """None for a language without deliveries."""
    pushes_as: str = ""
    """The language in which its webhooks get deliveries, where it is another."""

    def code(self, error: Error) -> int:
        """Return the number of an error. Raises LookupError for an error without one."""
        return entry(self.codes, error, f"number in {self.name}")

    def error(self, error: Error) -> dict[str, Any]:
        """Return the error object of an envelope."""
        return self.encode_error(error, self.code(error))

    def status(self, error: Error) -> int:
        """Return the HTTP status of an error in an envelope."""
        return self.statuses.get(type(error), 200)

    def headers(self, activated: tuple[str, ...] = ()) -> dict[str, str]:
        """Return the headers of an answer, or of a delivery, that was made with these extensions."""
        return {}

    def extensions(self, metadata: Callable[[str], str | None]) -> tuple[str, ...]:
        """Return the URIs of the extensions that a call requests. Raises InvalidRequest."""
        return ()


class Dialect(Language, frozen=True, kw_only=True):
    """One version of A2A."""

    version: str
    """The value of the A2A-Version header."""
    encode_card: Callable[[Card], dict[str, Any]]
    extensions_header: str
    """The header that names the extensions of an answer."""
    on_cards: bool = True
    """Cards list it among the versions that are spoken at their URL; else it has a card of its own."""

    def headers(self, activated: tuple[str, ...] = ()) -> dict[str, str]:
        """Return the version, and the extensions if there are any."""
        version = {VERSION_HEADER: self.version}
        return version | {self.extensions_header: ", ".join(activated)} if activated else version

    def extensions(self, metadata: Callable[[str], str | None]) -> tuple[str, ...]:
        """Return the URIs in either spelling of the header, which callers of any version may use."""
        new, old = metadata(HEADER), metadata(OLD_HEADER)
        return asked(new or "", old or "") if new or old else ()
