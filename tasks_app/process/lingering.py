"""The end of a connection after a refusal, while its client may still send. What it sends is dropped.

If such a connection were closed at once, the client would see a reset in place of the answer (RFC 9112, 9.6).
"""

import asyncio
from typing import Any

MAX_BYTES, MAX_SECONDS = 2_000_000, 1.0
"""The rest that the client of a refused request may still send. Many clients read the answer only when they have sent
all."""
PAUSE = 0.05
"""Seconds between two reads, to slow down a client that sends large bodies again and again."""


class Lingering:
    """A connection that has got its answer. It is closed when its client closes it, or after MAX_SECONDS."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.transport, self.loop = transport, loop
        self.dropped = 0
        """The bytes that came since the answer."""
        loop.call_later(MAX_SECONDS, transport.close)

    def drop(self, data: bytes) -> None:
        """Drop data, and read no more for a moment."""
        self.dropped += len(data)
        if self.dropped > MAX_BYTES:
            self.transport.abort()
            return
        self.transport.pause_reading()
        self.loop.call_later(PAUSE, self._resume)

    def _resume(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()
