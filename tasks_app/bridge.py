"""From async doors to synchronous, transactional work, in groups.

Three lanes, each a thread with a database connection of its own that pulls from a queue: write, read, and slow for
what is rare or long. While a lane is busy, items of one kind collect and are then performed together. Any thread may
put work in: `await bridge.ask(item)` on a loop, `bridge.do(item)` elsewhere. The type of the item says what is done.
"""

import asyncio
import logging
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
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

from tasks_app import access, event_log
from tasks_app.event_log import LOCKED, PUSHING, Append, Appended, Create, ReadTask, Refresh, pauses, refused
from tasks_app.hints import Reached, hints

log = logging.getLogger(__name__)
GROUP = 16
"""The most items performed together. With more, the interpreter waits while the database works, and then the database
while the interpreter does (measured at 32 callers: 64 is a tenth slower, 8 no faster)."""
PATIENCE = 10.0
"""Seconds for which a caller asks again for what somebody else holds; then its own caller is told to come back."""


class Do(Struct, frozen=True):
    """Any synchronous function; in a lane of its kind it has a connection, but no group. When a lock is refused to it,
    it is done again: it is a transaction, or may be done twice."""

    function: Callable[[], Any]


class DoSlowly(Do, frozen=True):
    """The same for what only reads and may take long."""


class Kind(Struct, frozen=True, kw_only=True):
    """What is done with the items of one type."""

    lane: str
    perform: Callable[[Sequence[Any]], list[Any]]
    unique: Callable[[Any], Hashable] | None = None
    """Items equal in this may not be in one group: a statement that changes a row twice loses one change."""
    repeatable: bool = False
    """Doing it twice does no harm, should it not be known whether it was done."""
    lighten: Callable[[Any], bool] | None = None
    """Takes out of a refused item what is not its purpose, for another try; whether there was anything."""
    told: Callable[[Sequence[Any], list[Any]], None] | None = None
    """Called with items and results after the commit, on the lane."""


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
            results.append(error)
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
        if result.stale:
            bridge.put(Refresh(task_id=item.task_id), None, None)


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
    event_log.ReadAsOf: Kind(lane="slow", perform=lambda items: [event_log.read_as_of(item) for item in items]),
    event_log.FindKey: Kind(lane="read", repeatable=True, perform=event_log.find_key_many),
    event_log.LastEvents: Kind(lane="read", repeatable=True, perform=event_log.last_events_many),
    Refresh: Kind(lane="write", perform=event_log.refresh_many),
    event_log.Claim: Kind(lane="write", perform=lambda items: [event_log.claim(item) for item in items], told=_claimed),
    event_log.Renew: Kind(lane="write", perform=lambda items: [event_log.renew(item) for item in items]),
    Do: Kind(lane="write", perform=_each),
    DoSlowly: Kind(lane="slow", perform=_each),
}

Ticket = tuple[Any, "Future[Any] | asyncio.Future[Any] | None", asyncio.AbstractEventLoop | None]


class Lane(threading.Thread):
    """A thread with a connection, and what waits for it."""

    def __init__(self, name: str) -> None:
        super().__init__(name=f"lane-{name}", daemon=True)
        self.ready = threading.Condition()
        self.waiting: dict[Kind, deque[Ticket]] = {}
        self.idle = False
        self.stopping = False

    def put(self, tickets: Sequence[tuple[Kind, Ticket]]) -> None:
        with self.ready:
            for kind, ticket in tickets:
                queue = self.waiting.get(kind)
                if queue is None:
                    queue = self.waiting[kind] = deque()
                queue.append(ticket)
            if self.idle:
                # A wake-up is a system call, and the lane takes the interpreter from whoever made it.
                self.ready.notify()

    def stop(self) -> None:
        """Ends the lane once nothing waits any more."""
        with self.ready:
            self.stopping = True
            self.ready.notify()

    def run(self) -> None:
        while (group := self._next()) is not None:
            kind, tickets = group
            keep_connection_usable()
            settle(tickets, perform(kind, [ticket[0] for ticket in tickets]))
        connection.close()

    def _next(self) -> tuple[Kind, list[Ticket]] | None:
        with self.ready:
            while not self.waiting:
                if self.stopping:
                    return None
                self.idle = True
                self.ready.wait()
                self.idle = False
            kind = next(iter(self.waiting))
            queue = self.waiting.pop(kind)
            tickets = take(queue, kind.unique)
            if queue:
                # Behind the other kinds, so that none of them starves.
                self.waiting[kind] = queue
            return kind, tickets


def take(queue: deque[Ticket], unique: Callable[[Any], Hashable] | None) -> list[Ticket]:
    """The next group; what may not be in it stays, in its order."""
    if unique is None:
        return [queue.popleft() for _ in range(min(GROUP, len(queue)))]
    group: list[Ticket] = []
    left: list[Ticket] = []
    seen: set[Hashable] = set()
    while queue and len(group) < GROUP:
        ticket = queue.popleft()
        key = unique(ticket[0])
        (left if key in seen else group).append(ticket)
        seen.add(key)
    queue.extendleft(reversed(left))
    return group


def perform(kind: Kind, items: Sequence[Any], *, again: bool = True) -> list[Any]:
    """Results in order; an item that fails has its exception as its result, one that was not begun has LOCKED.

    When a group is refused for its data, the halves are tried, so that what is wrong with one item is that
    item's error alone.
    """
    try:
        results = kind.perform(items)
    except (OperationalError, InterfaceError, NotSupportedError) as error:
        if refused(error):
            return [LOCKED] * len(items)
        # A connection that was cut. Reads may be asked again, and so may creates, whose ids and keys are fixed. And
        # anything that a plan refused, because its table was altered since: that was not begun.
        repeatable = kind.repeatable or isinstance(error, NotSupportedError)
        if again and repeatable and not connection.in_atomic_block:
            connection.close()
            return perform(kind, items, again=False)
        log.warning("a group of %d %s failed: %s", len(items), type(items[0]).__name__, error)
        return [error] * len(items)
    except (DataError, IntegrityError, event_log.Full) as error:
        if len(items) == 1:
            return perform(kind, items) if kind.lighten and kind.lighten(items[0]) else [error]
        half = len(items) // 2
        return perform(kind, items[:half]) + perform(kind, items[half:])
    except Exception as error:  # noqa: BLE001  # it is the callers' answer
        if isinstance(error, DatabaseError):
            log.warning("a group of %d %s failed: %s", len(items), type(items[0]).__name__, error)
        return [error] * len(items)
    if kind.told:
        try:
            kind.told(items, results)
        except Exception:
            # What was done is done, and the lane must go on: whoever was not told finds it when they look.
            log.exception("%d %s were done, and not all who listen were told", len(items), type(items[0]).__name__)
    return results


def settle(tickets: Sequence[Ticket], results: Sequence[Any]) -> None:
    """Hands the results over, with one wake-up a loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for (_, future, loop), result in zip(tickets, results, strict=True):
        if loop is not None:
            by_loop.setdefault(loop, []).append((future, result))  # type: ignore[arg-type]  # a loop's future has a loop
        elif future is not None:
            _set(future, result)
        elif isinstance(result, Exception):
            log.error("work that nobody waits for failed", exc_info=result)
    for loop, pairs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_set_all, pairs)
        except RuntimeError:
            log.info("%d results for a loop that has ended", len(pairs))


def _set_all(pairs: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in pairs:
        _set(future, result)


def _set(future: "Future[Any] | asyncio.Future[Any]", result: Any) -> None:
    if future.done():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)


def keep_connection_usable() -> None:
    """Drops a connection that broke or that the server closed while it was idle (measured: without the look at the
    socket the first group after a restart of PostgreSQL fails)."""
    connection.close_if_unusable_or_obsolete()
    if connection.vendor != "postgresql" or connection.connection is None:
        return
    poll = select.poll()
    poll.register(connection.connection.fileno(), select.POLLIN)
    if poll.poll(0) and not connection.is_usable():
        connection.close()


class Bridge:
    """The lanes of this process, started when first used."""

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self.starting = threading.Lock()
        self.collected: dict[asyncio.AbstractEventLoop, list[tuple[Kind, Ticket]]] = {}
        """What a loop has asked for in this turn: it goes to the lanes at once, in one group."""
        self.inline = False
        """For tests inside a transaction, which no other thread could see: work is done on the spot."""

    def put(self, item: Any, future: Any, loop: asyncio.AbstractEventLoop | None) -> None:
        kind = KINDS[type(item)]
        if self.inline:
            settle([(item, future, loop)], perform(kind, [item]))
            return
        self._lane(kind.lane).put([(kind, (item, future, loop))])

    def _lane(self, name: str) -> Lane:
        return self.lanes.get(name) or self._start(name)

    def _start(self, name: str) -> Lane:
        with self.starting:
            if name not in self.lanes:
                self.lanes[name] = Lane(name)
                self.lanes[name].start()
            return self.lanes[name]

    async def ask(self, item: Any, patience: float = PATIENCE) -> Any:
        """The result of the item, without blocking the loop. Raises what performing it raised, and Held when somebody
        else holds what it needs for longer than the patience."""
        loop, waits = asyncio.get_running_loop(), pauses(patience)
        while True:
            future: asyncio.Future[Any] = loop.create_future()
            if self.inline:
                from asgiref.sync import sync_to_async  # tests only

                await sync_to_async(self.put)(item, future, loop)
            else:
                self._collect(item, future, loop)
            result = await future
            if (pause := again_after(item, result, waits)) is None:
                return result
            await asyncio.sleep(pause)

    def _collect(self, item: Any, future: "asyncio.Future[Any]", loop: asyncio.AbstractEventLoop) -> None:
        collected = self.collected.get(loop)
        if collected is None:
            collected = self.collected[loop] = []
            loop.call_soon(self._hand_over, loop)
        collected.append((KINDS[type(item)], (item, future, loop)))

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        collected = self.collected.pop(loop)
        by_lane: dict[str, list[tuple[Kind, Ticket]]] = {}
        for pair in collected:
            by_lane.setdefault(pair[0].lane, []).append(pair)
        for name, pairs in by_lane.items():
            self._lane(name).put(pairs)

    def do(self, item: Any, patience: float = PATIENCE) -> Any:
        """The same for threads without a loop."""
        waits = pauses(patience)
        while True:
            future: Future[Any] = Future()
            self.put(item, future, None)
            result = future.result()
            if (pause := again_after(item, result, waits)) is None:
                return result
            time.sleep(pause)

    def stop(self) -> None:
        """Ends the lanes when their queues are empty."""
        with self.starting:
            lanes, self.lanes = list(self.lanes.values()), {}
        for lane in lanes:
            lane.stop()
        for lane in lanes:
            lane.join(settings.A2A_GRACE_SECONDS + 20)


def again_after(item: Any, result: Any, waits: Iterator[float]) -> float | None:
    """Seconds until the item, which was not done, is asked for again; None if the result is one. Raises Held."""
    if result is PUSHING:
        item.pushing = True
        return 0.0
    return next(waits) if result is LOCKED else None


bridge = Bridge()
"""Of this process."""
