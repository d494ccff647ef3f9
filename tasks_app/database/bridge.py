"""From async doors to synchronous, transactional work, in groups.

Lanes (lanes.py), each with database connections of its own: write; read; slow for what is rare or long, where owners
take turns; bodies for the deliveries to webhooks; health, so that whoever looks after the service waits for nobody
else. While a lane is busy, items of one kind collect and are then performed together. Any thread may put work in:
`await bridge.ask(item)` on a loop, `bridge.do(item)` elsewhere. The type of the item says what is done.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from django.conf import settings
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    NotSupportedError,
    OperationalError,
    connection,
)
from msgspec import Struct

from tasks_app import event_log
from tasks_app.callers import access
from tasks_app.database.lanes import GROUP, Kind, Lane, Refusals, Turns, settle, take
from tasks_app.database.sessions import overloaded, spent, too_slow
from tasks_app.database.waits import UNLIMITED, Busy, Left, Ticket, Waits
from tasks_app.event_log import LOCKED, PUSHING, Append, Appended, Create, ReadTask, Refresh, pauses, refused
from tasks_app.hints import Reached, hints

__all__ = [
    "GROUP",
    "KINDS",
    "UNLIMITED",
    "Busy",
    "Do",
    "DoApart",
    "DoSlowly",
    "Kind",
    "Left",
    "bridge",
    "perform",
    "take",
]
log = logging.getLogger(__name__)


class Do(Struct, frozen=True):
    """Any synchronous function; in a lane of its kind it has a connection, but no group. When a lock is refused to it,
    it is done again: it is a transaction, or may be done twice."""

    function: Callable[[], Any]


class DoSlowly(Do, frozen=True):
    """A function that only reads and may take long. Owners take turns; a read without an owner waits for no turn."""

    owner: int | None = None


class DoApart(Do, frozen=True):
    """A function of the service itself, such as readiness: it waits for no caller's work."""


def _each(items: Sequence[Do]) -> list[Any]:
    """Each for itself: what the others did is done, and is not to be done again."""
    results: list[Any] = []
    for item in items:
        try:
            results.append(item.function())
        except Exception as error:  # noqa: BLE001  # it is the answer to whoever asked for this one
            if refused(error):
                results.append(LOCKED)
                continue
            if isinstance(error, DatabaseError | InterfaceError):
                log.warning("a %s failed: %s", type(item).__name__, error)
            results.append(_told(error))
    return results


def _without_exchange(item: Create | Append) -> bool:
    """A change is not undone because its record is refused; the recorder tries again, and counts."""
    if item.exchange is None:
        return False
    item.exchange = item.body = None
    for event in item.events:
        event.exchange_id = None
    return True


def _created(items: Sequence[Create], results: list[Any]) -> None:
    """Nobody can follow a task that is not there yet: of a new one only those hear who run tasks."""
    made = [item.task for item, known in zip(items, results, strict=True) if known is None and item.task]
    if queues := frozenset({task.queue for task in made if task.state == "submitted"}):
        hints.offer(queues)
    if any(item.deliveries for item in items):
        hints.due()


def _claimed(items: Sequence[event_log.Claim], results: list[Any]) -> None:
    documents = [read.document for reads in results for read in reads]
    event_log.told([Reached(task.id, task.seq, task.state) for task in documents])


def _appended(items: Sequence[Append], results: list[Any]) -> None:
    done = [(item, result) for item, result in zip(items, results, strict=True) if isinstance(result, Appended)]
    event_log.told([Reached(item.task_id, result.seq, item.state, has_message(item)) for item, result in done])
    for item, result in done:
        if item.delay is not None:
            hints.offer_in(item.delay)
        if result.stale:
            bridge.put(Refresh(task_id=item.task_id))


def has_message(item: Append) -> bool:
    return any(event.kind == "message" for event in item.events)


KINDS: dict[type, Kind] = {
    Create: Kind(
        lane="write",
        perform=event_log.create_many,
        unique=lambda item: (item.key.owner_id, item.key.key),
        repeatable=True,
        lighten=_without_exchange,
        told=_created,
    ),
    Append: Kind(
        lane="write",
        perform=event_log.append_many,
        unique=lambda item: item.task_id,
        lighten=_without_exchange,
        told=_appended,
    ),
    access.FindCaller: Kind(lane="read", repeatable=True, perform=access.callers_many),
    event_log.ReadHead: Kind(lane="read", repeatable=True, perform=event_log.read_heads_many),
    ReadTask: Kind(lane="read", repeatable=True, perform=event_log.read_many),
    event_log.ReadEvents: Kind(lane="read", repeatable=True, perform=event_log.read_events_many),
    event_log.ReadAsOf: Kind(lane="read", repeatable=True, perform=event_log.read_as_of_many),
    event_log.MakeBody: Kind(lane="bodies", repeatable=True, perform=event_log.make_bodies),
    event_log.FindKey: Kind(lane="read", repeatable=True, perform=event_log.find_key_many),
    event_log.LastEvents: Kind(lane="read", repeatable=True, perform=event_log.last_events_many),
    Refresh: Kind(lane="write", perform=event_log.refresh_many),
    event_log.Claim: Kind(
        lane="write", patient=True, perform=lambda items: [event_log.claim(item) for item in items], told=_claimed
    ),
    event_log.Renew: Kind(lane="write", patient=True, perform=lambda items: [event_log.renew(item) for item in items]),
    Do: Kind(lane="write", perform=_each),
    DoSlowly: Kind(lane="slow", perform=_each),
    DoApart: Kind(lane="health", perform=_each),
}


def perform(kind: Kind, items: Sequence[Any], *, again: bool = True) -> list[Any]:
    """Results in order; an item that fails has its exception as its result, one that was not begun has LOCKED."""
    try:
        results = kind.perform(items)
    except Exception as error:  # noqa: BLE001  # it is the callers' answer
        return _failed(kind, items, error, again)
    if kind.told:
        try:
            kind.told(items, results)
        except Exception:
            # What was done is done, and the lane must go on: whoever was not told finds it when they look.
            log.exception("%d %s were done, and not all who listen were told", len(items), type(items[0]).__name__)
    return results


def _failed(kind: Kind, items: Sequence[Any], error: Exception, again: bool) -> list[Any]:
    """Try in another way what may succeed so; else return the error for each.

    When a group is refused for its data, or its size, the halves are tried, so that what is wrong with one item is that
    item's error alone.
    """
    if refused(error):
        return [LOCKED] * len(items)
    if isinstance(error, DataError | IntegrityError | event_log.Full) or overloaded(error):
        if len(items) > 1:
            half = len(items) // 2
            return perform(kind, items[:half]) + perform(kind, items[half:])
        return perform(kind, items) if kind.lighten and kind.lighten(items[0]) else [_told(error)]
    if again and _worth_another_session(kind, error) and not connection.in_atomic_block:
        connection.close()
        return perform(kind, items, again=False)
    if isinstance(error, DatabaseError | InterfaceError):
        log.warning("a group of %d %s failed: %s", len(items), type(items[0]).__name__, error)
    return [_told(error)] * len(items)


def _worth_another_session(kind: Kind, error: Exception) -> bool:
    """A connection was cut: reads may be asked again, and so may creates, whose ids and keys are fixed. Anything may be
    that was not begun: a plan refused it, because its table was altered since, or the session was read-only."""
    if isinstance(error, OperationalError | InterfaceError):
        return kind.repeatable and not too_slow(error)
    return isinstance(error, NotSupportedError) or spent(error)


def _told(error: Exception) -> Exception:
    """Return what the callers are told: of an error of the database that passes, to come again."""
    if too_slow(error):
        found = Busy(detail=f"it was given up after {settings.A2A_READ_SECONDS:g} s: ask for less at once")
    elif spent(error) or overloaded(error):
        found = Busy(detail="the database refuses it at the moment")
    else:
        return error
    found.__cause__ = error
    return found


class Bridge:
    """The lanes of this process, started when first used."""

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self.starting = threading.Lock()
        self.collected: dict[asyncio.AbstractEventLoop, list[tuple[Kind, Ticket]]] = {}
        """The items that a loop asked for in this turn: they go to the lanes at its end, in one group."""
        self.waits: dict[asyncio.AbstractEventLoop, Waits] = {}
        self.inline = False
        """For tests inside a transaction, which no other thread could see: work is done on the spot."""

    def put(self, item: Any, future: Future[Any] | None = None) -> None:
        """Has an item done that no caller waits for; the future, if there is one, gets its result."""
        self._put(Ticket(item, future, since=time.monotonic(), patient=True))

    def _put(self, ticket: Ticket) -> None:
        kind = KINDS[type(ticket.item)]
        if self.inline:
            settle([ticket], perform(kind, [ticket.item]))
        else:
            _refuse(self._lane(kind.lane).put([(kind, ticket)]))

    def _lane(self, name: str) -> Lane:
        return self.lanes.get(name) or self._start(name)

    def _start(self, name: str) -> Lane:
        with self.starting:
            if name not in self.lanes:
                self.lanes[name] = _started(name)
            return self.lanes[name]

    async def ask(
        self, item: Any, patience: float | None = None, left: Callable[[], Awaitable[None]] | None = None
    ) -> Any:
        """The result of the item, without blocking the loop. Raises what performing it raised; Held when somebody else
        holds what it needs for longer than the patience; Busy when there is no room, or no result in time; Left when
        `left` ends before. Work of our own has its own patience: it is asked for whatever waits, and as long.
        """
        loop, now, kind = asyncio.get_running_loop(), time.monotonic(), KINDS[type(item)]
        waits = self.waits.get(loop) or self._waits_of(loop)
        ends = UNLIMITED if kind.patient else now + waits.seconds(patience)
        pauses: Iterator[float] | None = None
        while True:
            future: asyncio.Future[Any] = loop.create_future()
            ticket = Ticket(item, future, loop, since=now, ends=ends, patient=patience is not None, left=left)
            if self.inline:
                from asgiref.sync import sync_to_async  # tests only

                await sync_to_async(self._put)(ticket)
                result = await future
            else:
                waits.add(ticket)
                try:
                    self._collect(kind, ticket, loop)
                    result = await future
                finally:
                    waits.remove(ticket)
            if result is not LOCKED and result is not PUSHING:
                return result
            pauses = pauses or _pauses(patience)
            await asyncio.sleep(again_after(item, result, pauses) or 0.0)

    def _waits_of(self, loop: asyncio.AbstractEventLoop) -> Waits:
        # Of loops that have ended, as those of tests do, nothing is kept.
        self.waits = {known: waits for known, waits in self.waits.items() if not known.is_closed()}
        waits = self.waits[loop] = Waits(loop)
        return waits

    def _collect(self, kind: Kind, ticket: Ticket, loop: asyncio.AbstractEventLoop) -> None:
        collected = self.collected.get(loop)
        if collected is None:
            collected = self.collected[loop] = []
            loop.call_soon(self._hand_over, loop)
        collected.append((kind, ticket))

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        collected = self.collected.pop(loop)
        by_lane: dict[str, list[tuple[Kind, Ticket]]] = {}
        for pair in collected:
            by_lane.setdefault(pair[0].lane, []).append(pair)
        for name, pairs in by_lane.items():
            _refuse(self._lane(name).put(pairs))

    def do(self, item: Any, patience: float | None = None) -> Any:
        """Do an item for a thread without a loop, and wait for it. All such threads are our own."""
        waits, now = _pauses(patience), time.monotonic()
        ends = _ends(item, now, patience)
        while True:
            future: Future[Any] = Future()
            ticket = Ticket(item, future, since=now, ends=ends, patient=True)
            self._put(ticket)
            try:
                result = future.result(None if ends == UNLIMITED else max(0.0, ends - time.monotonic()))
            except TimeoutError:
                if future.cancel():
                    raise ticket.late(time.monotonic()) from None
                result = future.result()  # It came at that moment, or the timeout is the work's own.
            if (pause := again_after(item, result, waits)) is None:
                return result
            time.sleep(pause)

    def troubles(self, seconds: float) -> list[str]:
        """Return sentences about lanes that have died, and about work that waits for longer than so many seconds in
        the lanes that every call needs."""
        found = [
            f"lane {lane.name}: a thread of it has ended; restart the process"
            for lane in list(self.lanes.values())
            if lane.dead
        ]
        return found + self._waits(seconds, lambda name: name in VITAL)

    def lags(self, seconds: float) -> list[str]:
        """Return sentences about work that waits for longer than so many seconds in any other lane. Callers fill those
        lanes by what they ask for, so that their queues keep no process from its work."""
        return self._waits(seconds, lambda name: name not in VITAL)

    def _waits(self, seconds: float, chosen: Callable[[str], bool]) -> list[str]:
        waits = [(lane.name, lane.wait()) for lane in list(self.lanes.values()) if chosen(lane.name)]
        return [f"lane {name}: the oldest work in it waits for {wait:.0f} s" for name, wait in waits if wait > seconds]

    def stop(self) -> None:
        """Ends the lanes when their queues are empty."""
        with self.starting:
            lanes, self.lanes = list(self.lanes.values()), {}
        for lane in lanes:
            lane.stop()
        for lane in lanes:
            lane.join(settings.A2A_GRACE_SECONDS + 20)


def _refuse(refusals: Refusals) -> None:
    if refusals:
        settle([ticket for ticket, _ in refusals], [error for _, error in refusals])


VITAL = frozenset({"write", "read", "health"})
"""Lanes whose work is small and never one caller's alone: when it waits, the process is not at its work."""


def _started(name: str) -> Lane:
    most = settings.A2A_LANE_CALLS
    lane = Lane(name, perform, most=most)
    if name == "slow":
        lane = Turns(name, perform, most=most, most_of_owner=settings.A2A_OWNER_READS)
        lane.seconds = settings.A2A_READ_SECONDS
    lane.start(settings.A2A_READ_CONNECTIONS if name == "slow" else 1)
    return lane


def _pauses(patience: float | None) -> Iterator[float]:
    return pauses(settings.A2A_CALL_SECONDS if patience is None else patience)


def _ends(item: Any, now: float, patience: float | None) -> float:
    """Until when the result is waited for."""
    return UNLIMITED if KINDS[type(item)].patient else now + max(settings.A2A_CALL_SECONDS, patience or 0.0)


def again_after(item: Any, result: Any, waits: Iterator[float]) -> float | None:
    """Seconds until the item, which was not done, is asked for again; None if the result is one. Raises Held."""
    if result is PUSHING:
        item.pushing = True
        return 0.0
    return next(waits) if result is LOCKED else None


bridge = Bridge()
"""The bridge of this process."""
