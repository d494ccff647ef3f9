"""Envelopes: what stands around calls and answers, one a file. An envelope knows no method and no language."""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from a2a.errors import Error
from a2a.language import Language

Id = str | float | None
"""The id of a call. A number keeps its form, 1 or 1.0: some clients tell the two apart."""


class Member(Struct, frozen=True, kw_only=True):
    """One call of a body that is well formed."""

    id: Id | UnsetType
    """UNSET for a notification; null is an id (JSON-RPC 2.0, section 4)."""
    method: str
    params: Any
    """UNSET when absent; a language wants an object."""
    source: Any
    """The member as it was parsed."""
    nul: bool = False
    """There may be U+0000 in its params; the language refuses it."""


class BadMember(Struct, frozen=True, kw_only=True):
    """One call of a body that is malformed."""

    id: Id | UnsetType
    """The id of the call, null if it could not be read; UNSET for a notification, which is not answered."""
    error: Error
    source: Any = None
    """The member as it was parsed."""


AnyMember = Member | BadMember


class Failure(NamedTuple):
    """An error in its envelope."""

    payload: bytes
    code: int
    """The number that the language has for the error."""
    status: int
    """The HTTP status, where there is one."""


class Envelope(Struct, frozen=True, kw_only=True):
    """One kind of envelope."""

    name: str
    """The name by which exchanges remember it."""
    parse: Callable[[bytes], AnyMember | list[AnyMember]]
    """Reads a single member, or the members of a batch. Raises ParseError and InvalidRequest for the whole body."""
    head: Callable[[Id], bytes]
    """Makes the bytes before the result of a call."""
    failure: Callable[[Id, Error, Language, int | None], Failure]
    """Encodes an error; the status overrides the one that the language has."""
    media: Callable[[Language], str]
    """The media type of answers."""
    tail: bytes = b""
    """The bytes behind a result."""

    def reply(self, rpc_id: Id, result: bytes) -> bytes:
        """Return the answer to a call that succeeded; the result is JSON already."""
        return self.head(rpc_id) + result + self.tail


class Wrapping(Struct, frozen=True):
    """The envelope of one call: an answer is put into it."""

    envelope: Envelope
    id: Id
    neutral: Language
    """The language of errors while none is chosen."""
    head: bytes
    silent: bool = False
    """The call is a notification: the work is done, and nothing is answered."""

    @property
    def media(self) -> str:
        """The media type of the answer."""
        return self.envelope.media(self.neutral)

    @property
    def tail(self) -> bytes:
        """The bytes behind a result."""
        return self.envelope.tail

    def failure(self, error: Error, language: Language | None = None, status: int | None = None) -> Failure:
        """Encode an error in the language, or in neutral words."""
        return self.envelope.failure(self.id, error, language or self.neutral, status)


def wrap(envelope: Envelope, rpc_id: Id | UnsetType, neutral: Language) -> Wrapping:
    """Return the envelope of a call; a call without an id is a notification."""
    known: Id = None if rpc_id is UNSET else rpc_id
    return Wrapping(envelope, known, neutral, envelope.head(known), rpc_id is UNSET)
