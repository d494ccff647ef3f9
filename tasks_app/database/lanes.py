"""Lanes: what waits for the database, and the threads with a connection each that do it, in groups."""

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
from tasks_app.database.errors import Busy
from tasks_app.database.sessions import begin_statements, keep_connection_usable, limit_statements
from tasks_app.database.waits import AnyFuture, Ticket
from tasks_app.database.work import Work

log = logging.getLogger(__name__)
GROUP = 16
"""The most items performed together. With more, the interpreter waits while the database works, and then the database
while the interpreter does (measured at 32 callers: 64 is a tenth slower, 8 no faster)."""
RETRY_AFTER = 2
"""Seconds after which a caller who found the lane full may come again."""


Kind = type[Work[Any]]
"""The class of the items of a group."""
Group = tuple[Kind, list[Ticket]]
Refusals = list[tuple[Ticket, Exception]]


class Lane:
    """Items that wait, and the thread that does them."""

    def __init__(self, name: str, do_group: Callable[[Kind, list[Any]], list[Any]], *, most: int) -> None:
        self.name = name
        self.most = most
        """Items that may wait; what callers ask for beyond that is refused at once."""
        self.seconds = 0.0
        """How long one statement may take; 0 is for ever."""
        self.do_group = do_group
        self.ready = threading.Condition()
        self.waiting: dict[Kind, deque[Ticket]] = {}
        self.size = 0
        self.idle = 0
        self.stopping = False
        self.began: dict[int, float] = {}
        """When each thread that is at work took its group, on the monotonic clock."""
        self.threads: list[threading.Thread] = []

    def start(self, threads: int = 1) -> None:
        self.threads = [
            threading.Thread(target=self._run, name=f"lane-{self.name}", daemon=True) for _ in range(threads)
        ]
        for thread in self.threads:
            thread.start()

    def put(self, tickets: Sequence[Ticket]) -> Refusals:
        """Take the tickets in; those for which there is no room come back, with the reason."""
        refused: Refusals = []
        with self.ready:
            for ticket in tickets:
                if self.size >= self.most and not (ticket.patient or ticket.item.patient):
                    detail = f"too much waits for the database already ({self.name})"
                    refused.append((ticket, Busy(RETRY_AFTER, detail=detail)))
                    continue
                self._add(ticket)
                self.size += 1
            if self.idle:
                # A wake-up is a system call, and the lane takes the interpreter from whoever made it.
                self.ready.notify(len(tickets))
        return refused

    def stop(self) -> None:
        """End the threads once nothing waits any more."""
        with self.ready:
            self.stopping = True
            self.ready.notify_all()

    def join(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0.0, ends - time.monotonic()))

    @property
    def dead(self) -> bool:
        """Whether a thread has ended by itself."""
        return not self.stopping and not all(thread.is_alive() for thread in self.threads)

    def wait(self) -> float:
        """Return for how many seconds the oldest work has waited, or been under way."""
        now = time.monotonic()
        with self.ready:
            return now - min([*self.began.values(), *self._since()], default=now)

    def _run(self) -> None:
        limit_statements(self.seconds)
        me = threading.get_ident()
        while self._do_next(me):
            pass
        connection.close()

    def _do_next(self, me: int) -> bool:
        """Do the next group; return whether there may be another. A function of its own, because its names end with it:
        a thread that waits must not keep what it did last, which may be a large task."""
        group = self._next(me)
        if group is None:
            return False
        kind, tickets = group
        try:
            self._do(kind, tickets)
        except Exception as error:
            # Whatever it is, the next group is another.
            log.exception("lane %s: %d %s came to nothing", self.name, len(tickets), type(tickets[0].item).__name__)
            settle(tickets, [error] * len(tickets))
        finally:
            self._done(me, tickets)
        return True

    def _do(self, kind: Kind, tickets: list[Ticket]) -> None:
        if live := begin(tickets, time.monotonic()):
            keep_connection_usable()
            begin_statements()
            settle(live, self.do_group(kind, [ticket.item for ticket in live]))

    def _next(self, me: int) -> Group | None:
        with self.ready:
            while (group := self._take()) is None:
                if self.stopping and not self.size:
                    self.ready.notify_all()  # Others may wait for what was left to an owner who had threads enough.
                    return None
                self.idle += 1
                self.ready.wait()
                self.idle -= 1
            self.size -= len(group[1])
            self.began[me] = time.monotonic()
            return group

    def _done(self, me: int, tickets: list[Ticket]) -> None:
        """Note that a thread has no work; on that thread."""
        self.began.pop(me, None)

    # ------------------------------------------------- the order, under `ready`

    def _add(self, ticket: Ticket) -> None:
        kind = type(ticket.item)
        queue = self.waiting.get(kind)
        if queue is None:
            queue = self.waiting[kind] = deque()
        queue.append(ticket)

    def _take(self) -> Group | None:
        if not self.waiting:
            return None
        kind = next(iter(self.waiting))
        queue = self.waiting.pop(kind)
        tickets = take(queue, None if kind.unique is Work.unique else kind.unique)
        if queue:
            # Behind the other kinds, so that none of them starves.
            self.waiting[kind] = queue
        return kind, tickets

    def _since(self) -> list[float]:
        """Return since when the first of each queue waits."""
        return [queue[0].since for queue in self.waiting.values()]


class Turns(Lane):
    """A lane of several threads whose owners take turns, an item each.

    While others wait, an owner has one thread; one thread is never an owner's second, so that others need not wait for
    the end of what that owner asked for.
    """

    def __init__(self, *arguments: Any, most: int, most_of_owner: int) -> None:
        super().__init__(*arguments, most=most)
        self.most_of_owner = most_of_owner
        self.owners: OrderedDict[Hashable, deque[Ticket]] = OrderedDict()
        self.at_work: Counter[Hashable] = Counter()

    def put(self, tickets: Sequence[Ticket]) -> Refusals:
        """Take the tickets in; those for which there is no room, or whose owner waits for too much, come back."""
        error = RateLimited(RETRY_AFTER, limit="lists and other long reads that wait", most=str(self.most_of_owner))
        with self.ready:
            room: Counter[Hashable] = Counter()
            fits: list[Ticket] = []
            refused: Refusals = []
            for ticket in tickets:
                owner = owner_of(ticket)
                room[owner] += 1
                full = len(self.owners.get(owner, ())) + room[owner] > self.most_of_owner
                (refused.append((ticket, error)) if full and not ticket.patient else fits.append(ticket))
        return refused + super().put(fits)

    def _add(self, ticket: Ticket) -> None:
        self.owners.setdefault(owner_of(ticket), deque()).append(ticket)

    def _take(self) -> Group | None:
        owner = self._turn()
        if owner is None:
            return None
        queue = self.owners.pop(owner)
        ticket = queue.popleft()
        if queue:
            self.owners[owner] = queue
        self.at_work[owner] += 1
        return type(ticket.item), [ticket]

    def _turn(self) -> Hashable | None:
        """Return whose turn it is: the first owner with nothing at work, else the first that may have more."""
        second = None
        for owner in self.owners:
            if not self.at_work[owner]:
                return owner
            if second is None and self.at_work[owner] < len(self.threads) - 1:
                second = owner
        return second

    def _done(self, me: int, tickets: list[Ticket]) -> None:
        super()._done(me, tickets)
        with self.ready:
            owner = owner_of(tickets[0])
            self.at_work[owner] -= 1
            if not self.at_work[owner]:
                del self.at_work[owner]
            if self.owners and self.idle:
                self.ready.notify()

    def _since(self) -> list[float]:
        return [queue[0].since for queue in self.owners.values()]


def owner_of(ticket: Ticket) -> Hashable:
    """Return who takes turns with others; what has no owner is an owner of its own."""
    owner: Hashable = getattr(ticket.item, "owner", None)
    return id(ticket) if owner is None else ("owner", owner)


def begin(tickets: Sequence[Ticket], now: float) -> list[Ticket]:
    """Return the tickets that somebody still waits for; the callers of those whose deadline has passed are told."""
    live = [ticket for ticket in tickets if not ticket.over]
    late = [ticket for ticket in live if now >= ticket.ends]
    if late:
        settle(late, [ticket.late(now) for ticket in late])
        live = [ticket for ticket in live if now < ticket.ends]
    return live


def take(queue: deque[Ticket], unique: Callable[[Any], Hashable] | None) -> list[Ticket]:
    """The next group; what may not be in it stays, in its order."""
    if unique is None:
        return [queue.popleft() for _ in range(min(GROUP, len(queue)))]
    group: list[Ticket] = []
    left: list[Ticket] = []
    keys: set[Hashable] = set()
    while queue and len(group) < GROUP:
        ticket = queue.popleft()
        key = unique(ticket.item)
        (left if key in keys else group).append(ticket)
        keys.add(key)
    queue.extendleft(reversed(left))
    return group


def settle(tickets: Sequence[Ticket], results: Sequence[Any]) -> None:
    """Hands the results over, with one wake-up a loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[AnyFuture, Any]]] = {}
    for ticket, result in zip(tickets, results, strict=True):
        if ticket.future is None:
            if isinstance(result, Exception):
                log.error("work that nobody waits for failed", exc_info=result)
        elif ticket.loop is not None:
            by_loop.setdefault(ticket.loop, []).append((ticket.future, result))
        else:
            _set(ticket.future, result)
    for loop, pairs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_set_all, pairs)
        except RuntimeError:
            log.info("%d results for a loop that has ended", len(pairs))


def _set_all(pairs: Sequence[tuple[AnyFuture, Any]]) -> None:
    for future, result in pairs:
        _set(future, result)


def _set(future: AnyFuture, result: Any) -> None:
    if future.done():
        return
    try:
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
    except InvalidStateError:
        log.debug("a result came at the moment of its deadline")
