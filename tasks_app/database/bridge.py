"""The bridge from async doors to synchronous, transactional work in groups.

Each lane (lanes.py) has database connections of its own: `write`; `read`; `slow` for rare or long reads, and `large`
for tasks of many bytes, where owners take turns; `bodies` for bodies of deliveries; `files` for stored bytes, which a
slow disk may delay; `retention` for deleting old rows; `sums` for what owners have stored; `health`, so that checks of
the service and look-ups of operators' tokens wait for no caller. While a lane is busy, items of one class collect, and
are then done together. Any thread may use it: `await bridge.ask(item)` on a loop, `bridge.do(item)` elsewhere. The
class of an item (work.py) says where and how it is done.
This room knows no table's meaning.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from typing import Any

from django.conf import settings

from tasks_app.database.groups import do_group
from tasks_app.database.lanes import Lane, Refusals, SharedLane, settle
from tasks_app.database.locks import pauses
from tasks_app.database.waits import UNLIMITED, Entry, Waits
from tasks_app.database.work import LOCKED, Elsewhere, NotDone, R, Work

STOP_SECONDS = 30.0
"""Seconds that the end of the lanes may take if nothing else is said."""


class Bridge:
    """The lanes of this process, started when first used."""

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self.starting = threading.Lock()
        self.batches: dict[asyncio.AbstractEventLoop, list[Entry]] = {}
        """The items of each loop in its current turn. They go to the lanes at the end of the turn, in one group."""
        self.waits: dict[asyncio.AbstractEventLoop, Waits] = {}

    def put(self, item: Work[R], future: Future[R] | None = None) -> None:
        """Have an item done without waiting. A future gets its result."""
        self._put(Entry(item, future=future, since=time.monotonic(), patient=True))

    def _put(self, entry: Entry) -> None:
        _refuse(self._lane(entry.item.lane).put([entry]))

    def _lane(self, name: str) -> Lane:
        return self.lanes.get(name) or self._start(name)

    def _start(self, name: str) -> Lane:
        with self.starting:
            if name not in self.lanes:
                self.lanes[name] = lane = open_lane(name)
                if isinstance(lane, SharedLane):
                    lane.small_calls = self._small_calls
            return self.lanes[name]

    def _small_calls(self) -> int:
        """Return the number of items so far that calls have asked of the lanes for small ones."""
        return sum(lane.calls for lane in (self.lanes.get("read"), self.lanes.get("write")) if lane is not None)

    async def ask(
        self,
        item: Work[R],
        patience: float | None = None,
        departure: Callable[[], Awaitable[None]] | None = None,
        on_delay: Callable[[], None] | None = None,
    ) -> R:
        """Return the result of the item, without blocking the loop.

        Raises the item's own errors. Raises LockRefused when another transaction keeps a row locked for longer than the
        patience, Busy when the lane is full or no result comes in time, and CallerLeft when `departure` ends before. A
        patience is given for work of our own: a full lane takes it in, and its result is awaited for at least as long.

        `on_delay` is called each time that the item is not done at once, because a row is locked or the item is slow.
        """
        loop, now = asyncio.get_running_loop(), time.monotonic()
        waits = self.waits.get(loop) or self._waits_of(loop)
        ends = UNLIMITED if item.patient else now + waits.seconds(patience)
        pauses: Iterator[float] | None = None
        while True:
            future: asyncio.Future[Any] = loop.create_future()
            entry = Entry(
                item,
                loop,
                patience is not None,
                future=future,
                since=now,
                ends=ends,
                departure=departure,
            )
            waits.add(entry)
            try:
                self._collect(entry, loop)
                result: R | NotDone = await future
            finally:
                waits.remove(entry)
            if not isinstance(result, NotDone):
                return result
            if on_delay is not None:
                on_delay()
            if isinstance(result, Elsewhere):
                item = result.instead
            pauses = pauses or _pauses(patience)
            await asyncio.sleep(_pause(result, pauses))

    def _waits_of(self, loop: asyncio.AbstractEventLoop) -> Waits:
        # Drop the waits of loops that have ended.
        self.waits = {other: waits for other, waits in list(self.waits.items()) if not other.is_closed()}
        waits = self.waits[loop] = Waits(loop)
        return waits

    def _collect(self, entry: Entry, loop: asyncio.AbstractEventLoop) -> None:
        batch = self.batches.get(loop)
        if batch is None:
            batch = self.batches[loop] = []
            loop.call_soon(self._hand_over, loop)
        batch.append(entry)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = self.batches.pop(loop)
        by_lane: dict[str, list[Entry]] = {}
        for entry in batch:
            by_lane.setdefault(entry.item.lane, []).append(entry)
        for name, entries in by_lane.items():
            _refuse(self._lane(name).put(entries))

    def do(self, item: Work[R], patience: float | None = None) -> R:
        """Return the result of the item, for a thread without a loop. All such threads are our own."""
        waits, now = _pauses(patience), time.monotonic()
        ends = _ends(item, now, patience)
        while True:
            future: Future[R | NotDone] = Future()
            entry = Entry(item, future=future, since=now, ends=ends, patient=True)
            self._put(entry)
            try:
                result = future.result(None if ends == UNLIMITED else max(0.0, ends - time.monotonic()))
            except TimeoutError:
                if future.cancel():
                    raise entry.late(time.monotonic()) from None
                result = future.result()  # The result came at that moment, or the TimeoutError is its own.
            if not isinstance(result, NotDone):
                return result
            if isinstance(result, Elsewhere):
                item = result.instead
            time.sleep(_pause(result, waits))

    def troubles(self, seconds: float) -> list[str]:
        """Return sentences about lanes with a dead thread, and about vital lanes with work older than the seconds."""
        return self.deaths() + self._waits(seconds, lambda name: name in VITAL)

    def deaths(self) -> list[str]:
        """Return sentences about lanes with a dead thread."""
        lanes = [lane for lane in list(self.lanes.values()) if lane.dead]
        return [f"lane {lane.name}: a thread of it has ended; restart the process" for lane in lanes]

    def lags(self, seconds: float) -> list[str]:
        """Return sentences about other lanes with work older than the seconds. One caller's reads can fill those lanes,
        so that their queues do not make the process unready."""
        return self._waits(seconds, lambda name: name not in VITAL | UNHURRIED)

    def _waits(self, seconds: float, includes: Callable[[str], bool]) -> list[str]:
        waits = [(lane.name, lane.wait()) for lane in list(self.lanes.values()) if includes(lane.name)]
        return [f"lane {name}: the oldest work in it waits for {wait:.0f} s" for name, wait in waits if wait > seconds]

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End the lanes once their queues are empty, or leave them after the seconds. A database that hangs has all of
        them wait at the same time."""
        with self.starting:
            lanes, self.lanes = list(self.lanes.values()), {}
        for lane in lanes:
            lane.stop()
        ends = time.monotonic() + seconds
        for lane in lanes:
            rest = max(0.0, ends - time.monotonic())
            lane.join(min(rest, UNHURRIED_SECONDS) if lane.name in UNHURRIED else rest)


def _refuse(refusals: Refusals) -> None:
    if refusals:
        settle([entry for entry, _ in refusals], [error for _, error in refusals])


FILES_AT_ONCE = 4
"""Threads that read and write stored bytes: a file that is slow to read holds up no other."""
VITAL = frozenset({"write", "read", "health"})
"""Lanes of small items of all callers. When they wait, the process does not do its work."""
UNHURRIED = frozenset({"sums"})
"""Lanes whose items may take minutes. That is no delay, and the end of a process waits for them only a moment."""
UNHURRIED_SECONDS = 0.5
"""Seconds of that moment."""


def open_lane(name: str) -> Lane:
    """Start the threads of a lane."""
    most = settings.A2A_LANE_CALLS
    lane = Lane(name, do_group, most=most)
    if name in {"slow", "large"}:
        lane = SharedLane(name, do_group, most=most, most_of_owner=settings.A2A_OWNER_READS)
        lane.seconds = settings.A2A_READ_SECONDS
    lane.gives_way = name in {"large", "bodies", "sums"}
    lane.is_hasty = name == "write"
    lane.start({"slow": settings.A2A_READ_CONNECTIONS, "files": FILES_AT_ONCE}.get(name, 1))
    return lane


def _pauses(patience: float | None) -> Iterator[float]:
    return pauses(settings.A2A_CALL_SECONDS if patience is None else patience)


def _ends(item: Work[R], now: float, patience: float | None) -> float:
    """Return the deadline of the result, on the monotonic clock."""
    return UNLIMITED if item.patient else now + max(settings.A2A_CALL_SECONDS, patience or 0.0)


def _pause(result: NotDone, waits: Iterator[float]) -> float:
    """Return the seconds until an item that was not done is repeated. Raises LockRefused."""
    return next(waits) if result is LOCKED else 0.0


bridge = Bridge()
"""The bridge of this process."""
