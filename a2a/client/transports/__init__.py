"""Transports: how the calls of a language travel. One a file, each a value with `call` and `stream`.

A transport makes one attempt. Repetition and resumption are the same for all of them, and are elsewhere.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from a2a.types import Json


class Frame(NamedTuple):
    """One event of a stream as it came."""

    id: str | None
    value: Any
    """The JSON of the result."""
    retry: float | None = None
    """Seconds after which the server wants a lost stream to be taken up again."""


class Transport(Protocol):
    """A way to one address."""

    where: str
    """The address."""

    async def call(self, method: str, params: Json, seconds: float) -> Any:
        """Return the JSON of the result within so many seconds. Raises ClientError."""

    def stream(self, method: str, params: Json, after: str | None) -> AbstractAsyncContextManager[AsyncIterator[Frame]]:
        """Open a stream after the event of that id, and give its events. Raises ClientError, while opening too."""

    async def close(self) -> None:
        """Close what is kept open between calls."""
