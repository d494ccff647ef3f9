"""The entrance of this process: few requests of strangers begin in one round.

Most are refused without a wait. A hundred that arrive together would be answered in one round, while the calls of
others, each of which takes some rounds, wait for them. A connection is a stranger's unless the last call on it had a
valid credential and could be read.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Mapping
from itertools import islice
from operator import attrgetter
from typing import Any

from msgspec import Struct

from tasks_app.callers.peers import origin_in
from tasks_app.callers.schemes import evidence_in
from tasks_app.limits.turns import turns
from tasks_app.process.asgi_extensions import CONNECTION, SOCKET
from tasks_app.transports.bodies import Gone
from tasks_app.transports.heads import meta_of
from tasks_app.transports.keys import is_cached

LINES = {"calls": 2, "callers": 4, "health": 2, "pages": 2, "handshakes": 2}
"""Requests of each kind that begin in one round: calls of strangers; those on other connections than before, and
handshakes of WebSocket, whose credential led to a caller before; checks of health; pages; and other handshakes."""
CHECKED = {"calls", "handshakes"}
"""The kinds of which those of callers wait in a line of their own."""
MOST_BYTES = 16_000_000
"""Bytes of memory that the requests that wait may take, with those behind them on their connections. With more, the
newest of an address with many is dropped with its connection, out of the line that has most bytes. An answer would take
what it should save."""
LOOK = 32
"""Addresses among which the one with most bytes is looked for. A look at all would cost more than the request."""
PAUSES = dict.fromkeys(LINES, 0.004) | {"callers": 0.001}
"""Seconds between two rounds of a line while known callers call. Between them the loop leaves the interpreter to the
threads that do the calls. Otherwise each of them would wait for it for five milliseconds, many times for each call. If
strangers paused one millisecond only, a call of others would take twice as long beside a hundred of them as alone."""


class Place(Struct, eq=False):
    """The place of a request in a line."""

    future: "asyncio.Future[None]"
    connection: Any
    size: int


class Line:
    """The requests of one kind that are to begin. Addresses take turns, so that none waits behind those of another."""

    def __init__(self, most: int, pause: float) -> None:
        self.most = most
        self.pause = pause
        """Seconds between two rounds while known callers call."""
        self.is_due = False
        """Whether the next round will begin."""
        self.in_round = 0
        """The number of requests that have begun in the current round."""
        self.waiting: OrderedDict[str, OrderedDict[Place, None]] = OrderedDict()
        """The places of each address, in their order."""
        self.sizes: Counter[str] = Counter()
        """The bytes of each address that has places."""
        self.size = 0
        """The bytes of all of them."""

    def add(self, address: str, place: Place) -> None:
        """Add a place."""
        self.waiting.setdefault(address, OrderedDict())[place] = None
        self.sizes[address] += place.size
        self.size += place.size

    def drop_newest(self, address: str) -> None:
        """Drop the newest place of an address with many bytes, with its connection. The given address is one of those
        that are looked at, if it has places."""
        largest = max(islice(self.waiting, LOOK), key=self.sizes.__getitem__)
        if address in self.waiting:
            largest = max(largest, address, key=self.sizes.__getitem__)
        last = next(reversed(self.waiting[largest]))
        self.remove(largest, last)
        last.connection.transport.abort()
        if not last.future.done():
            last.future.set_result(None)

    def remove(self, address: str, place: Place) -> None:
        """Remove a place, if it is still there."""
        places = self.waiting.get(address)
        if places is None or place not in places:
            return
        del places[place]
        self.size -= place.size
        self.sizes[address] -= place.size
        if not places:
            del self.waiting[address], self.sizes[address]

    def begin(self) -> None:
        """Begin a round."""
        self.in_round = 0
        while self.waiting and self.in_round < self.most:
            address = next(iter(self.waiting))
            place = next(iter(self.waiting[address]))
            self.waiting.move_to_end(address)
            self.remove(address, place)
            if not place.future.done():
                place.future.set_result(None)
                self.in_round += 1


class Entrance:
    """The lines of requests, and their rounds."""

    def __init__(self) -> None:
        self._begin_anew(None)

    def _begin_anew(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop = loop
        self.lines = {kind: Line(most, PAUSES[kind]) for kind, most in LINES.items()}

    async def enter(self, scope: Mapping[str, Any], kind: str, size: int = 0) -> None:
        """Wait until a request whose body was read may begin. A call of a known caller does not wait.

        `size` is that of the body, as far as it is in no account. Raises Gone if the client leaves before, and if too
        many wait.
        """
        if (connection := scope.get("extensions", {}).get(CONNECTION)) is None:
            return
        if kind == "calls":
            is_known, connection.is_known = connection.is_known, False
            if is_known:
                return
        await self._begin(scope, kind, connection, size)

    async def enter_socket(self, scope: Mapping[str, Any]) -> None:
        """Wait until a handshake of WebSocket may begin. Raises Gone as enter() does."""
        if (socket := scope.get("extensions", {}).get(SOCKET)) is not None:
            await self._begin(scope, "handshakes", socket, 0)

    async def _begin(self, scope: Mapping[str, Any], kind: str, connection: Any, size: int) -> None:
        """Wait until a request on a connection may begin. Raises Gone."""
        if (loop := asyncio.get_running_loop()) is not self.loop:
            self._begin_anew(loop)
        if self._passes(kind):
            return
        meta = meta_of(scope)
        if (checked := _kind_of(meta, kind)) != kind and self._passes(checked):
            return
        line, address = self.lines[checked], origin_in(meta)
        del meta  # It takes as much memory as the head, which alone is in the size of the place.
        place = Place(loop.create_future(), connection, size + connection.size)
        line.add(address, place)
        self._make_room(address)
        connection.line_up(place.future)
        try:
            await place.future
        finally:
            line.remove(address, place)
            connection.line_up(None)
        if connection.transport.is_closing():
            connection.abandon()
            raise Gone

    def _make_room(self, address: str) -> None:
        """Drop requests while all lines together have too many bytes."""
        while sum(line.size for line in self.lines.values()) > MOST_BYTES:
            max(self.lines.values(), key=attrgetter("size")).drop_newest(address)

    def _passes(self, kind: str) -> bool:
        line = self.lines[kind]
        if line.in_round >= line.most or line.waiting:
            return False
        line.in_round += 1
        self._begin_round_soon(line)
        return True

    def _begin_round_soon(self, line: Line) -> None:
        if (loop := self.loop) is None or line.is_due:
            return
        line.is_due = True
        if turns.are_taken():
            loop.call_later(line.pause, self._begin_round, line, loop)
        else:
            loop.call_soon(self._begin_round, line, loop)

    def _begin_round(self, line: Line, loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self.loop:
            return
        line.is_due = False
        line.begin()
        if line.in_round:
            self._begin_round_soon(line)


def _kind_of(meta: Mapping[str, Any], kind: str) -> str:
    """Return the kind of a request that waits. The credential is looked at only then, because that takes as long as a
    small call."""
    if kind not in CHECKED:
        return kind
    evidence = evidence_in(meta)
    return "callers" if evidence is not None and is_cached(evidence) else kind


entrance = Entrance()
"""The entrance of this process."""
