"""Transports: the ways in which the calls of a language are sent. Each is a value with `call` and `stream`.

A transport makes one attempt. Repetition and resumption are the same for all transports, in patience.py and stream.py.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from a2a.types import Json


class Frame(NamedTuple):
    """One event of a stream, before it is decoded."""

    id: str | None
    value: Any
    """The JSON of the result."""
    retry: float | None = None
    """The pause in seconds after which the server asks clients to resume a lost stream."""


class Transport(Protocol):
    """A way to send calls to one address."""

    where: str
    """The address."""

    async def call(self, method: str, params: Json, seconds: float, headers: Mapping[str, str]) -> Any:
        """Return the JSON of the result. The limit is in seconds, and the headers are those of this call alone. Raises
        ClientError."""

    def stream(
        self, method: str, params: Json, after: str | None, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[AsyncIterator[Frame]]:
        """Open a stream of the events after that id. Raises ClientError, also while it opens."""

    async def close(self) -> None:
        """Close the connections that stay open between calls."""
