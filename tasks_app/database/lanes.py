"""Lanes: queues of work items, and threads with a connection each that do the items in groups."""

import asyncio
import logging
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import InvalidStateError
from typing import Any

from django.db import connection

from a2a.errors import RateLimited
from tasks_app.database.counting import count_results
from tasks_app.database.errors import Busy, log_failure
from tasks_app.database.sessions import (
    begin_statements,
    keep_connection_usable,
    limit_lock_waits,
    limit_statements,
)
from tasks_app.database.waits import AnyFuture, Entry
from tasks_app.database.work import Work
from tasks_app.off_loop import lower_priority

log = logging.getLogger(__name__)
GROUP = 16
"""Items of a group, at most. With larger groups the interpreter waits for the database, and then the database for the
interpreter (measured at 32 callers: 64 is a tenth slower, 8 no faster)."""
RETRY_AFTER = 2
"""Seconds after which a caller who found the lane full may come again."""
SMALL_CALLS = 10
"""Small calls in a second from which on one owner's long reads give way to them."""
COUNT_SECONDS = 0.25
"""Seconds for which small calls are counted."""
REST_SHARE, LONGEST_REST = 3.0, 0.1
"""The rest of a thread after a long read that gives way: its share of the time of the read, and the most seconds."""
Kind = type[Work[Any]]
"""The class of the items of a group."""
Group = tuple[Kind, list[Entry]]
Refusals = list[tuple[Entry, Exception]]


class Lane:
    """A queue of items, and the threads that do them."""

    def __init__(self, name: str, do_group: Callable[[Kind, list[Any]], list[Any]], *, most: int) -> None:
        self.name = name
        self.most = most
        """Items that may wait. An item of a caller beyond that is refused at once."""
        self.gives_way = False
        """Whether its threads have a lower priority than others."""
        self.seconds = 0.0
        """The longest time of one statement; 0 sets no limit."""
        self.is_hasty = False
        """Whether a lock is refused that another transaction keeps for longer than a moment."""
        self.do_group = do_group
        self.ready = threading.Condition()
        self.waiting: dict[Kind, deque[Entry]] = {}
        self.size = 0
        self.calls = 0
        """Items so far for which a loop waited: those of calls."""
        self.idle = 0
        self.stopping = False
        self.began: dict[int, float] = {}
        """The time on the monotonic clock when each thread at work took its group."""
        self.threads: list[threading.Thread] = []

    def start(self, threads: int = 1) -> None:
        self.threads = [
            threading.Thread(target=self._run, name=f"lane-{self.name}", daemon=True) for _ in range(threads)
        ]
        for thread in self.threads:
            thread.start()

    def put(self, entries: Sequence[Entry]) -> Refusals:
        """Take in the entries. Return those for which there is no room, with the error."""
        refusals: Refusals = []
        with self.ready:
            for entry in entries:
                if self._is_full() and not entry.is_patient:
                    detail = f"too much waits for the database already ({self.name})"
                    refusals.append((entry, Busy(RETRY_AFTER, detail=detail)))
                    continue
                self._add(entry)
                self.size += 1
                self.calls += entry.loop is not None
            if self.idle:
                # A wake-up is a system call, and the lane's thread takes the interpreter from this one.
                self.ready.notify(len(entries))
        return refusals

    def stop(self) -> None:
        """End the threads once the queue is empty."""
        with self.ready:
            self.stopping = True
            self.ready.notify_all()

    def join(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0.0, ends - time.monotonic()))

    @property
    def dead(self) -> bool:
        """True if a thread has ended by itself."""
        return not self.stopping and not all(thread.is_alive() for thread in self.threads)

    def wait(self) -> float:
        """Return the seconds for which the oldest item has waited, or been under way."""
        now = time.monotonic()
        with self.ready:
            return now - min([*self.began.values(), *self._since()], default=now)

    def _run(self) -> None:
        if self.gives_way:
            lower_priority()
        limit_statements(self.seconds)
        if self.is_hasty:
            limit_lock_waits()
        me = threading.get_ident()
        while self._do_next(me):
            pass
        connection.close()

    def _do_next(self, me: int) -> bool:
        """Do the next group; return whether there may be another. This is a function of its own so that its names end
        with it: a waiting thread must not keep its last result in memory, which may be a large task."""
        group = self._next(me)
        if group is None:
            return False
        kind, entries = group
        try:
            self._do(kind, entries)
        except Exception as error:  # noqa: BLE001  # the lane goes on with the next group, and log_failure() logs it
            log_failure(log, "lane %s: %d %s failed", self.name, len(entries), type(entries[0].item).__name__)
            count_results(kind, [error] * len(entries))
            settle(entries, [error] * len(entries))
        finally:
            self._finish(me, entries)
        return True

    def _do(self, kind: Kind, entries: list[Entry]) -> None:
        if live := begin(entries, time.monotonic()):
            keep_connection_usable()
            begin_statements()
            results = self.do_group(kind, [entry.item for entry in live])
            count_results(kind, results)
            settle(live, results)

    def _next(self, me: int) -> Group | None:
        with self.ready:
            while (group := self._take()) is None:
                if self.stopping and not self.size:
                    self.ready.notify_all()  # Other threads may wait because the owner of the rest had enough threads.
                    return None
                self.idle += 1
                self.ready.wait()
                self.idle -= 1
            self.size -= len(group[1])
            self.began[me] = time.monotonic()
            return group

    def _finish(self, me: int, entries: list[Entry]) -> None:
        """Note that a thread has finished its group. Called on that thread."""
        self.began.pop(me, None)

    # ------------------------------------------------- the order, under `ready`

    def _is_full(self) -> bool:
        return self.size >= self.most

    def _add(self, entry: Entry) -> None:
        kind = type(entry.item)
        queue = self.waiting.get(kind)
        if queue is None:
            queue = self.waiting[kind] = deque()
        queue.append(entry)

    def _take(self) -> Group | None:
        if not self.waiting:
            return None
        kind = next(iter(self.waiting))
        queue = self.waiting.pop(kind)
        entries = take(queue, None if kind.unique is Work.unique else kind.unique)
        if queue:
            # After the other kinds, so that none of them starves.
            self.waiting[kind] = queue
        return kind, entries

    def _since(self) -> list[float]:
        """Return the time since when the first item of each queue waits."""
        return [queue[0].since for queue in self.waiting.values()]


class SharedLane(Lane):
    """A lane of several threads whose owners take turns, an item each. Items of one key count as one.

    While others wait, an owner has one thread. One thread is never the second of an owner, so that other owners need
    not wait for the end of a long read.

    An owner who has more reads waiting would take the processors from the small calls of all others. While there are
    such calls, an owner has one thread, and that rests after each read while more reads of the owner wait. The database
    takes a processor for each read at the same time, and has small calls wait for it.
    """

    def __init__(self, *arguments: Any, most: int, most_of_owner: int) -> None:
        super().__init__(*arguments, most=most)
        self.most_of_owner = most_of_owner
        self.small_calls: Callable[[], int] = lambda: 0
        """Returns the number of small calls so far."""
        self.last_count = (0.0, 0)
        """The time of the last count of small calls, on the monotonic clock, and the count."""
        self.gives_room = False
        """Whether there were many small calls between the last two counts."""
        self.owners: OrderedDict[Hashable, deque[Entry]] = OrderedDict()
        self.patient_size = 0
        """Items that wait and that no limit refuses. An owner may have any number of them, which must not have those of
        others refused."""
        self.at_work: Counter[Hashable] = Counter()

    def put(self, entries: Sequence[Entry]) -> Refusals:
        """Take in the entries. Return those for which there is no room, or whose owner has too many waiting."""
        error = RateLimited(RETRY_AFTER, limit="lists and other long reads that wait", most=str(self.most_of_owner))
        with self.ready:
            room: Counter[Hashable] = Counter()
            fits: list[Entry] = []
            refusals: Refusals = []
            for entry in entries:
                owner = owner_of(entry)
                room[owner] += 1
                full = len(self.owners.get(owner, ())) + room[owner] > self.most_of_owner
                (refusals.append((entry, error)) if full and not entry.is_patient else fits.append(entry))
        return refusals + super().put(fits)

    def _is_full(self) -> bool:
        return self.size - self.patient_size >= self.most

    def _add(self, entry: Entry) -> None:
        self.patient_size += entry.is_patient
        self.owners.setdefault(owner_of(entry), deque()).append(entry)

    def _take(self) -> Group | None:
        owner = self._turn()
        if owner is None:
            return None
        queue = self.owners.pop(owner)
        group = take_twins(queue)
        self.patient_size -= sum(entry.is_patient for entry in group)
        if queue:
            self.owners[owner] = queue
        self.at_work[owner] += 1
        return type(group[0].item), group

    def _turn(self) -> Hashable | None:
        """Return the owner whose turn it is: the first with no thread at work, else the first that may have a
        second."""
        second, most = None, 1 if self.gives_room else len(self.threads) - 1
        for owner in self.owners:
            if not self.at_work[owner]:
                return owner
            if second is None and self.at_work[owner] < most:
                second = owner
        return second

    def _do(self, kind: Kind, entries: list[Entry]) -> None:
        since = time.monotonic()
        super()._do(kind, entries)
        now = time.monotonic()
        if rest := self.rest_after(owner_of(entries[0]), now - since, now):
            time.sleep(rest)

    def rest_after(self, owner: Hashable, seconds: float, now: float) -> float:
        """Return the seconds for which a thread rests after a read that took so long."""
        with self.ready:
            time_of_count, calls = self.last_count
            if now - time_of_count >= COUNT_SECONDS:
                self.last_count = now, self.small_calls()
                self.gives_room = self.last_count[1] - calls >= SMALL_CALLS * (now - time_of_count)
            return min(REST_SHARE * seconds, LONGEST_REST) if self.gives_room and owner in self.owners else 0.0

    def _finish(self, me: int, entries: list[Entry]) -> None:
        super()._finish(me, entries)
        with self.ready:
            owner = owner_of(entries[0])
            self.at_work[owner] -= 1
            if not self.at_work[owner]:
                del self.at_work[owner]
            if self.owners and self.idle:
                self.ready.notify()

    def _since(self) -> list[float]:
        return [queue[0].since for queue in self.owners.values()]


def owner_of(entry: Entry) -> Hashable:
    """Return the owner who takes turns with others. An item without an owner is an owner of its own."""
    owner: Hashable = getattr(entry.item, "owner", None)
    return id(entry) if owner is None else ("owner", owner)


def begin(entries: Sequence[Entry], now: float) -> list[Entry]:
    """Return the entries that a caller still waits for. An entry beyond its deadline gets its error."""
    live = [entry for entry in entries if not entry.over]
    late = [entry for entry in live if now >= entry.ends]
    if late:
        settle(late, [entry.late(now) for entry in late])
        live = [entry for entry in live if now < entry.ends]
    return live


def take(queue: deque[Entry], unique: Callable[[Any], Hashable] | None) -> list[Entry]:
    """Take the next group out of the queue. Items that may not go with it stay, in their order."""
    if unique is None:
        return [queue.popleft() for _ in range(min(GROUP, len(queue)))]
    group: list[Entry] = []
    rest: list[Entry] = []
    keys: set[Hashable] = set()
    while queue and len(group) < GROUP:
        entry = queue.popleft()
        key = unique(entry.item)
        (rest if key in keys else group).append(entry)
        keys.add(key)
    queue.extendleft(reversed(rest))
    return group


def take_twins(queue: deque[Entry]) -> list[Entry]:
    """Take the first item out of the queue, and those of the same class and key. The others stay, in their order."""
    first = queue.popleft()
    key = getattr(first.item, "key", None)
    if key is None:
        return [first]
    twins = [first]
    rest: list[Entry] = []
    for entry in queue:
        is_twin = type(entry.item) is type(first.item) and getattr(entry.item, "key", None) == key
        (twins if is_twin else rest).append(entry)
    queue.clear()
    queue.extend(rest)
    return twins


def settle(entries: Sequence[Entry], results: Sequence[Any]) -> None:
    """Give the results to their futures, with one wake-up for each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[AnyFuture, Any]]] = {}
    for entry, result in zip(entries, results, strict=True):
        if entry.future is None:
            if isinstance(result, Exception):
                log.error("a work item without a caller failed", exc_info=result)
        elif entry.loop is not None:
            by_loop.setdefault(entry.loop, []).append((entry.future, result))
        else:
            _set(entry.future, result)
    for loop, pairs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_set_all, pairs)
        except RuntimeError:
            log.debug("%d results were dropped, their loop has ended", len(pairs))


def _set_all(pairs: Sequence[tuple[AnyFuture, Any]]) -> None:
    for future, result in pairs:
        _set(future, result)


def _set(future: AnyFuture, result: Any) -> None:
    if future.done():
        return
    try:
        if isinstance(result, StopIteration):
            # asyncio refuses it for its futures, and the other results of the group would be lost.
            future.set_exception(RuntimeError(f"a work item raised {result!r}"))
        elif isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
    except InvalidStateError:
        log.debug("a result came at the moment of its deadline")
