"""Envelopes: the text around calls and answers, a module for each kind. An envelope knows no method and no language."""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from a2a.errors import Error
from a2a.language import Language

Id = str | float | None
"""The id of a call. An answer repeats a number in its form, 1 or 1.0, since some clients distinguish them."""


class Member(Struct, frozen=True, kw_only=True):
    """One well-formed call of a body."""

    id: Id | UnsetType
    """The id of the call. UNSET for a notification; null is an id (JSON-RPC 2.0, section 4)."""
    method: str
    params: Any
    """The params as parsed JSON of any type; UNSET when absent."""
    source: Any
    """The member as parsed JSON, to be recorded."""
    nul: bool = False
    """True if the params may contain U+0000, which the door looks for and refuses in the call's language."""


class BadMember(Struct, frozen=True, kw_only=True):
    """One malformed call of a body."""

    id: Id | UnsetType
    """The id of the call, null if it is unreadable. UNSET for a notification, which has no answer."""
    error: Error
    method: str = ""
    """The method, empty if it is unreadable."""
    source: Any = None
    """The member as parsed JSON, to be recorded."""


AnyMember = Member | BadMember


class Failure(NamedTuple):
    """An error in its envelope."""

    payload: bytes
    code: int
    """The number of the error in its language."""
    status: int
    """The HTTP status, for doors of HTTP."""


class Envelope(Struct, frozen=True, kw_only=True):
    """One kind of envelope."""

    name: str
    """The name that exchanges store."""
    parse: Callable[[bytes], AnyMember | list[AnyMember]]
    """Parses a body into a single member, or into the members of a batch. Raises ParseError and InvalidRequest for
    faults of the whole body."""
    head: Callable[[Id], bytes]
    """Returns the bytes before the result of a call."""
    failure: Callable[[Id, Error, Language, int | None], Failure]
    """Encodes an error. A status, if there is one, takes the place of the language's own."""
    media: Callable[[Language], str]
    """Returns the media type of answers in a language."""
    tail: bytes = b""
    """The bytes after a result."""
    check_closed: Callable[[Member], None] = lambda member: None
    """Checks that a call has no members but those of the envelope, and that its params are an object. Raises
    InvalidRequest."""

    def reply(self, rpc_id: Id, result: bytes) -> bytes:
        """Return the answer to a successful call. The result is encoded JSON."""
        return self.head(rpc_id) + result + self.tail


class Wrapping(Struct, frozen=True):
    """The envelope of one call, with the id that its answer repeats."""

    envelope: Envelope
    id: Id
    neutral: Language
    """The language of errors before one is chosen."""
    head: bytes
    """The bytes before a result."""
    silent: bool = False
    """True for a notification, which is performed without an answer."""

    @property
    def media(self) -> str:
        """The media type of the answer."""
        return self.envelope.media(self.neutral)

    @property
    def tail(self) -> bytes:
        """The bytes after a result."""
        return self.envelope.tail

    def failure(self, error: Error, language: Language | None = None, status: int | None = None) -> Failure:
        """Encode an error in the language, or in the neutral one if the language is None."""
        return self.envelope.failure(self.id, error, language or self.neutral, status)


def wrap(envelope: Envelope, rpc_id: Id | UnsetType, neutral: Language) -> Wrapping:
    """Return the envelope of one call. A call whose id is UNSET is a notification."""
    id_or_null: Id = None if rpc_id is UNSET else rpc_id
    return Wrapping(envelope, id_or_null, neutral, envelope.head(id_or_null), rpc_id is UNSET)
