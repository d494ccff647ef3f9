"""The end of a connection after a refusal, while its client may still send. What it sends is dropped.

If such a connection were closed at once, the client would see a reset in place of the answer (RFC 9112, 9.6).
"""

import asyncio
from collections import deque
from typing import Any

MAX_BYTES, MAX_SECONDS = 2_000_000, 3.0
"""The rest that the client of a refused request may still send. Many clients read the answer only when they have sent
all. With the pauses between two reads, so many bytes take 1.5 s, and longer while the cores are busy."""
PAUSE = 0.05
"""Seconds between two reads, to slow down a client that sends large bodies again and again."""
MAX_READ = 32
"""Connections that are read after a pause. If there are more, they take turns."""


class Lingering:
    """A connection that has got its answer. It is closed when its client closes it, or after MAX_SECONDS."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.transport, self.loop = transport, loop
        self.dropped = 0
        """The bytes that came since the answer."""
        loop.call_later(MAX_SECONDS, transport.close)

    def drop(self, data: bytes) -> None:
        """Drop data, and read no more until the turn of this connection comes."""
        self.dropped += len(data)
        if self.dropped > MAX_BYTES:
            self.transport.abort()
        else:
            self.transport.pause_reading()
            _turns.add(self)

    def resume(self) -> bool:
        """Read on; return whether the connection is still open."""
        if self.transport.is_closing():
            return False
        self.transport.resume_reading()
        return True


class Turns:
    """The turns of connections whose reading is paused."""

    def __init__(self) -> None:
        self.waiting: deque[Lingering] = deque()
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop that will call _next(), or None."""

    def add(self, lingering: Lingering) -> None:
        """Let a connection wait for its turn."""
        self.waiting.append(lingering)
        self._plan(lingering.loop)

    def _plan(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.loop is not loop:
            self.loop = loop
            loop.call_later(PAUSE, self._next, loop)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = None
        read = 0
        while self.waiting and read < MAX_READ:
            read += self.waiting.popleft().resume()
        if self.waiting:
            self._plan(loop)


_turns = Turns()
"""The turns of this process, whose connections belong to one loop."""
