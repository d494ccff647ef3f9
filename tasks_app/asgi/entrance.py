"""The entrance of this process: few requests of strangers begin in one round of its loop.

Most are refused without a wait. A hundred that arrive together would be answered in one round, while the calls of
others, each of which takes some rounds, wait for them. A connection is a stranger's unless the last call on it had a
valid credential and could be read.
"""

import asyncio
from collections.abc import Mapping
from time import monotonic
from typing import Any

from tasks_app.callers.schemes import evidence_in
from tasks_app.limits.turns import turns
from tasks_app.process.asgi_extensions import COMPLETE, CONNECTION, SOCKET
from tasks_app.transports.bodies import Gone
from tasks_app.transports.call import SMALL
from tasks_app.transports.heads import meta_of
from tasks_app.transports.keys import is_cached

LINES = {"calls": 2, "callers": 4, "health": 2, "pages": 2, "handshakes": 2}
"""Requests of each kind that begin in one round: calls of strangers; those on other connections than before, and
handshakes of WebSocket, whose credential led to a caller before; checks of health; pages; and other handshakes."""
CHECKED = {"calls", "handshakes"}
"""The kinds of which those of callers wait in a line of their own."""
MOST_BYTES = 16_000_000
"""Bytes of the heads and bodies of each kind that wait: those of all small requests that connections can have. The
connection of a further one is closed: an answer would take what it should save."""
PAUSE = 0.001
"""Seconds between two rounds while known callers call. The loop is idle then, and leaves the interpreter to the threads
that do the calls. Otherwise each of them would wait for it for five milliseconds, many times for each call."""
CALLING_SECONDS = 1.0
"""Seconds for which a call of a known caller counts as one of those."""


class Line:
    """The requests of one kind that are to begin."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.in_round = 0
        """The number of requests that have begun in the current round."""
        self.waiting: dict[asyncio.Future[None], int] = {}
        """The bytes of each request that waits."""
        self.size = 0
        """The bytes of all of them."""

    def add(self, future: "asyncio.Future[None]", size: int) -> None:
        self.waiting[future] = size
        self.size += size

    def remove(self, future: "asyncio.Future[None]") -> None:
        self.size -= self.waiting.pop(future, 0)

    def begin(self) -> None:
        """Begin a round."""
        self.in_round = 0
        while self.waiting and self.in_round < self.most:
            future = next(iter(self.waiting))
            self.remove(future)
            if not future.done():
                future.set_result(None)
                self.in_round += 1


class Entrance:
    """The lines of requests, and the rounds of the loop."""

    def __init__(self) -> None:
        self._begin_anew(None)

    def _begin_anew(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop = loop
        self.lines = {kind: Line(most) for kind, most in LINES.items()}
        self.is_due = False
        """Whether the next round will begin."""

    async def enter(self, scope: Mapping[str, Any], kind: str = "calls") -> None:
        """Wait until a request may begin. That of a known caller does not wait.

        Raises Gone if its client leaves before, and if too many wait.
        """
        extensions = scope.get("extensions", {})
        if (connection := extensions.get(CONNECTION)) is None:
            return
        is_known = connection.is_known
        if kind == "calls":
            connection.is_known = False
        # Larger bodies count in the account of their callers while they arrive, and would not in the line.
        if not (is_known or COMPLETE not in extensions or connection.size > SMALL):
            await self._begin(scope, kind, connection)

    async def enter_socket(self, scope: Mapping[str, Any]) -> None:
        """Wait until a handshake of WebSocket may begin. Raises Gone as enter() does."""
        if (socket := scope.get("extensions", {}).get(SOCKET)) is not None:
            await self._begin(scope, "handshakes", socket)
            if socket.transport.is_closing():
                raise Gone

    async def _begin(self, scope: Mapping[str, Any], kind: str, connection: Any) -> None:
        """Wait until a request on a connection may begin. Raises Gone if too many wait."""
        if (loop := asyncio.get_running_loop()) is not self.loop:
            self._begin_anew(loop)
        if not self._passes(kind):
            size = connection.size + sum(len(name) + len(value) for name, value in scope["headers"])
            await self._wait(_kind_of(scope, kind) if kind in CHECKED else kind, connection, size)

    def _passes(self, kind: str) -> bool:
        line = self.lines[kind]
        if line.in_round >= line.most or line.waiting:
            return False
        line.in_round += 1
        if not self.is_due:
            self._begin_round_soon()
        return True

    async def _wait(self, kind: str, connection: Any, size: int) -> None:
        line = self.lines[kind]
        if line.size + size > MOST_BYTES:
            connection.transport.abort()
            await asyncio.sleep(0)  # Then the connection is lost, and the server does not miss the answer.
            raise Gone
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.add(future, size)
        connection.line_up(future)
        try:
            await future
        finally:
            line.remove(future)
            connection.line_up(None)

    def _begin_round_soon(self) -> None:
        if (loop := self.loop) is None:
            return
        self.is_due = True
        if monotonic() - turns.last_at < CALLING_SECONDS:
            loop.call_later(PAUSE, self._begin_round, loop)
        else:
            loop.call_soon(self._begin_round, loop)

    def _begin_round(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self.loop:
            return
        self.is_due = False
        for line in self.lines.values():
            line.begin()
        if any(line.in_round for line in self.lines.values()):
            self._begin_round_soon()


def _kind_of(scope: Mapping[str, Any], kind: str) -> str:
    """Return the kind of a call or a handshake that waits. It is looked at only then, because that takes as long as a
    small call."""
    evidence = evidence_in(meta_of(scope))
    return "callers" if evidence is not None and is_cached(evidence) else kind


entrance = Entrance()
"""The entrance of this process."""
