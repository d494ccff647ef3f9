"""The parts of a wire language, and the parts that only a dialect of A2A has. A language is a value in its own file."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import Struct

from a2a import sse
from a2a.answers import Frame, Result
from a2a.documents import Encoded, EventDocument, EventKind, TaskDocument
from a2a.errors import ContentTypeNotSupported, Error, InvalidParams
from a2a.extensions import HEADER, OLD_HEADER, read_uris
from a2a.requests import Request
from a2a.shared_streams import ChunkDocument
from a2a.types import Card, Json

Spelling = Literal["own", "acp"]
"""A spelling of scopes: the names of this server, or those of ACP."""
MESSAGE = "message"
"""The member of the params with the message, in the words of operations."""
VERSION_HEADER = "A2A-Version"
"""The header that names the A2A version of a call or an answer (A2A 1.0.1, 14.2.1)."""


class Cell(NamedTuple):
    """An error in one language: a cell of the matrix of errors."""

    number: int
    status: int = 200
    """The HTTP status of a single call in an envelope."""
    reason: str = ""
    """The reason that the language has for the error; empty if it is that of the class."""


Column = dict[type[Error], Cell]
"""The cells of one language. It has a cell for each error of errors.ALL."""
Value = TypeVar("Value")


def entry(table: Mapping[type[Error], Value], error: Error, what: str) -> Value:
    """Return the table's value for the row of an error.

    Raises LookupError with the name of the missing value, such as "HTTP status", for an error that the table lacks.
    """
    if error.row not in table:
        raise LookupError(f"{error.row.__name__} has no {what}: add it to the table")
    return table[error.row]


class Method(Struct, frozen=True, kw_only=True):
    """A method of one language: the decoder of its params and the encoder of its result."""

    request: type[Request]
    """The class of requests that `decode` returns. The scope of the class is checked before the params are decoded."""
    decode: Callable[[Any], Request]
    """Decodes the params, which are parsed JSON, or UNSET when absent. Raises InvalidParams."""
    encode: Callable[[Any], Encoded]
    """Encodes the Result of the operation as JSON."""
    as_stream: "Method | None" = None
    """The method in place of this one for a caller that takes a stream as the answer; None if there is none."""
    stream_unless: str = ""
    """The member of the params with which the answer is never a stream; empty if there is none."""
    message: str = MESSAGE
    """The member of the params with the message. Errors of operations, which call it `message`, are reworded to it."""
    params: Any = Json
    """The type of the params, for descriptions. Members that it lacks are ignored."""
    result: Any = Any
    """The type of the result, for descriptions; of a stream, the type of each event."""


def rename_message(error: Error, name: str) -> Error:
    """Return an operation's error, which calls the message of the params `message`, with this name for it."""
    if name == MESSAGE:
        return error
    if isinstance(error, InvalidParams):
        violations = ((_renamed(field, name), text) for field, text in error.violations)
        return InvalidParams(*violations, **error.facts)
    if isinstance(error, ContentTypeNotSupported) and "part" in error.facts:
        return ContentTypeNotSupported(**error.facts | {"part": _renamed(error.facts["part"], name)})
    return error


def _renamed(path: str, name: str) -> str:
    first, dot, rest = path.partition(".")
    return f"{name}{dot}{rest}" if first == MESSAGE else path


def may_stream(method: Method, params: Any) -> bool:
    """Return whether these params allow the method's answer to be a stream."""
    name = method.stream_unless
    return not (name and isinstance(params, dict) and params.get(name) is not None)


class Route(Struct, frozen=True, kw_only=True):
    """A method over REST: its verb and path. The variables of the path, the query and the body are its params."""

    verb: str
    path: str
    """A template such as /tasks/{id}:cancel. A name in braces is a variable, which matches text without a slash."""
    method: str
    query: type[Struct] | None = None
    """The struct of the params that the query may contain: its strings, numbers and booleans."""
    camel: bool = True
    """True if members of the body may have names in snake_case, which are read in camelCase, as in ProtoJSON."""


class Rest(Struct, frozen=True, kw_only=True):
    """A language over REST, without an envelope: verb and path name the method."""

    routes: tuple[Route, ...]
    """The routes. The first template that matches a path is chosen."""
    media: str
    """The media type of answers."""
    statuses: dict[type[Error], tuple[int, str]]
    """The HTTP status and the gRPC name of each error."""
    encode_error: Callable[[Error, int, str], dict[str, Any]]
    """Encodes an error, with its HTTP status and its gRPC name, as the body of the answer."""
    error_type: Any = Json
    """The type of that body, for descriptions."""


class Push(Struct, frozen=True, kw_only=True):
    """The deliveries of a language to webhooks."""

    encode: Callable[[EventDocument, Callable[[], TaskDocument]], bytes | None]
    """Encodes an event as the body of its delivery; None if it has none. The function returns the task as of the
    event, for bodies that need it."""
    has: Callable[[EventKind, str | None], bool]
    """Returns whether an event of this kind, which sets this state, has a delivery."""
    media: str
    """The media type of the body."""
    whole_task: bool = False
    """True if each body is the whole task, so that a later delivery supersedes earlier ones."""
    filters: bool = False
    """True if a webhook in the language may have a filter, and bodies name the notice of their event."""
    one_for_address: bool = False
    """True if registering the address of one of the task's webhooks again, without an id, replaces that webhook."""
    sign: Callable[[str, bytes], dict[str, str]] | None = None
    """Returns further signatures of a body as headers, from the secret and the body, beside those of Standard Webhooks.
    """
    default_id: bool = False
    """True if a webhook that is registered without an id is the task's default and gets the task's id."""


def identity(error: Error) -> Error:
    """Return the error unchanged."""
    return error


class Language(Struct, frozen=True, kw_only=True):
    """One wire language."""

    name: str
    """The name that exchanges and webhooks store, such as a2a-1.0."""
    methods: dict[str, Method]
    column: Column
    """The number and the HTTP status of each error of a2a/errors.py."""
    encode_error: Callable[[Error, int], dict[str, Any]]
    """Encodes an error and its number as the error object of an envelope."""
    encode_frame: Callable[[Frame, int | None], bytes | None]
    """Encodes one event of a stream as JSON; None for an event that the language does not show. The number is that of
    the newest messages to include, None for all."""
    error_type: Any = Json
    """The type of the error object, for descriptions."""
    spelling: Spelling = "own"
    """The spelling of scopes in its errors. ACP asks every caller for a scope of its own besides that of the method."""
    words: Callable[[Error], Error] = identity
    """Rewrites an operation's error in the words of this language."""
    is_closed: bool = False
    """True if an envelope has no members but its own, and its params are an object. JSON-RPC 2.0 allows more."""
    needs_id: bool = False
    """True if a request without an id is refused, with the id null. Otherwise it is a notification. For a
    method that no language of a row has, the first one decides."""
    needs_tls: bool = False
    """True if its calls come over TLS alone, except to development servers."""
    answers_early: bool = False
    """True if refusals that come before a language is chosen, such as of a malformed request or of invalid credentials,
    are in this language where the method or the pin of the key names it. Otherwise they are in the neutral one."""
    dates_errors: bool = False
    """True if each of its errors has the fact `timestamp`."""
    errors_as_stream: bool = False
    """True if a client that accepts only a stream, and names no version, gets an error as the one event of a stream."""
    encode_notification: Callable[[EventDocument], bytes] | None = None
    """Encodes an event of a stream as a notification, which is sent as it is, without the envelope of an answer. The
    first frame of the stream is the answer. None for a language whose frames are all answers."""
    encode_chunk: Callable[[ChunkDocument], bytes] | None = None
    """Encodes a chunk of a shared stream as a notification, which is sent as it is, without the envelope of an answer.
    None for a language without shared streams."""
    rest: Rest | None = None
    """The form over REST; None for a language that is always in an envelope."""
    push: Push | None = None
    """The form of deliveries; None for a language without any."""
    pushes_as: str = ""
    """The name of the language of its deliveries. Empty if it is this language."""
    encode_card: Callable[[Card], dict[str, Any]] | None = None
    """Encodes a card in the form of the language; None for a language without cards."""
    key_header: str = ""
    """The header that each send must have, whose value is the id of the message; empty where the params have the id."""
    agent_header: str = ""
    """The header in which answers name the agent; empty for a language without one."""
    refusal: Callable[[Result | Frame], Error | None] | None = None
    """Returns the error that the language answers for a result, such as a task that has failed; None for an answer.
    Without this function every result is an answer. With it a call that waits begins its answer only when the outcome
    is there, because the HTTP status depends on the outcome."""
    framing: Callable[[bytes, int | None], bytes] = sse.frame
    """Returns one event of a stream over HTTP, with its sequence number, as a server-sent event."""
    call_id_member: str = ""
    """The member of an error's `data` that repeats the id of the call; empty for a language without one."""

    def cell(self, error: Error) -> Cell:
        """Return the cell of an error. Raises LookupError if the column lacks it."""
        return entry(self.column, error, f"cell in {self.name}")

    def code(self, error: Error) -> int:
        """Return the number of an error. Raises LookupError if the column lacks the error."""
        return self.cell(error).number

    def reason(self, kind: type[Error]) -> str:
        """Return the reason of a kind of errors in the words of this language."""
        return self.column[kind.row].reason or kind.reason

    def reword(self, error: Error, method: Method | None) -> Error:
        """Return an operation's error in the words of this language, and of the params of the method."""
        return self.words(rename_message(error, method.message) if method else error)

    def error(self, error: Error) -> dict[str, Any]:
        """Return the error object of an envelope."""
        return self.encode_error(error, self.code(error))

    def status(self, error: Error) -> int:
        """Return the HTTP status of an error in an envelope."""
        return self.cell(error).status

    def headers(self, uris: tuple[str, ...] = ()) -> dict[str, str]:
        """Return the headers of an answer or a delivery. The URIs are those of the extensions that are active."""
        return {}

    def extensions(self, metadata: Callable[[str], str | None]) -> tuple[str, ...]:
        """Return the URIs of the extensions that a call requests. Raises InvalidRequest.

        `metadata` returns a header of the call by name, None if it is absent.
        """
        return ()


class Dialect(Language, frozen=True, kw_only=True):
    """One version of A2A."""

    version: str
    """The value of the A2A-Version header."""
    encode_card: Callable[[Card], dict[str, Any]]
    extensions_header: str
    """The header in which answers name the extensions that are active."""
    on_cards: bool = True
    """True if cards list the version among those spoken at their URL. False if the version has a card of its own."""

    def headers(self, uris: tuple[str, ...] = ()) -> dict[str, str]:
        """Return the header of the version, and that of the active extensions if there are any."""
        version = {VERSION_HEADER: self.version}
        return version | {self.extensions_header: ", ".join(uris)} if uris else version

    def extensions(self, metadata: Callable[[str], str | None]) -> tuple[str, ...]:
        """Return the URIs from both spellings of the header. Callers of any version may use either."""
        new, old = metadata(HEADER), metadata(OLD_HEADER)
        return read_uris(new or "", old or "") if new or old else ()
