"""Exchanges: every call next to its answer. Written with the change where there is one, else behind the answer.

A failure to record never changes an answer: it is counted and logged.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Self

from django.db import InterfaceError, InternalError, OperationalError, connection
from msgspec import Struct

from tasks_app.database.bridge import bridge
from tasks_app.database.work import Work
from tasks_app.exchanges.backlog import Backlog, Pair
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.storage import write

log = logging.getLogger(__name__)
BEHIND = 0.05
"""Seconds by which recording may lag behind an answer."""
MOST_BEHIND = 16_000_000
"""Characters of exchanges that may wait for the database."""
ROW_SIZE = 2_000
"""About what the row of an exchange takes in memory."""


class Record(Work[None], Struct, frozen=True):
    """Exchanges to write: new ones whole, the endings of those whose request half is there, and both of those of which
    nobody knows."""

    lane = "write"

    new: list[Pair]
    endings: list[Pair]
    doubtful: list[Pair] = []
    again: bool = False
    """They are from the backlog."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[None]:
        return record_many(items)

    @property
    def pairs(self) -> list[Pair]:
        return [*self.new, *self.endings, *self.doubtful]

    @property
    def size(self) -> int:
        """About what it takes in memory."""
        return sum(ROW_SIZE + len(body.request) + len(body.response) for _, body in self.pairs)


AWAY = (OperationalError, InterfaceError, InternalError)
"""Errors of a database that may take the same rows later."""


class Recorder:
    """Collects closed exchanges and writes them in groups, behind the answers."""

    def __init__(self) -> None:
        self.waiting: list[OpenExchange] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop that will call flush; None if none will. A loop that has ended never does."""
        self.behind = 0
        """Characters that were handed over and are not written yet."""
        self.counting = threading.Lock()
        self.backlog = Backlog()
        self.offering = threading.Lock()
        """Locked while exchanges of the backlog are at the lane."""
        self._collecting = threading.Lock()
        """Without it, an exchange closed on one loop could be added to a list that another thread has handed over."""
        self._unwritten: set[Future[None]] = set()

    @property
    def lost(self) -> int:
        """Exchanges that could not be written, since the start."""
        return self.backlog.lost

    def close(self, exchange: OpenExchange) -> None:
        """Record an exchange whose answer has been given; on the loop of the door."""
        if exchange.written and exchange.answer is not None:
            return
        loop = asyncio.get_running_loop()
        with self._collecting:
            self.waiting.append(exchange)
            if self.loop is not loop:
                self.loop = loop
                loop.call_later(BEHIND, self.flush)

    def open(self, exchange: OpenExchange) -> None:
        """A stream begins that changed nothing: its request half is written now, to be seen while it is open."""
        self._hand_over(Record([(exchange.row, exchange.body)], []))
        exchange.written = True

    def flush(self) -> None:
        """Hands everything collected to the write lane."""
        with self._collecting:
            waiting, self.waiting = self.waiting, []
            self.loop = None
        if waiting:
            record = Record([], [], [])
            for item in waiting:
                group = record.doubtful if item.doubtful else record.endings if item.written else record.new
                group.append((item.row, item.body))
            self._hand_over(record)

    def drain(self, seconds: float) -> bool:
        """Hand everything over and wait until it is written; False if the seconds pass before that, or the database is
        away.

        Work put into the lane behind it is no sign: a lane takes the kinds of work in turn, so another item of a kind
        that waits already is done earlier.
        """
        ends = time.monotonic() + seconds
        self.flush()
        while under_way := list(self._unwritten):  # The next part of the backlog is offered when one was taken.
            if wait(under_way, max(0.0, ends - time.monotonic())).not_done:
                return False
        return not len(self.backlog)

    def _hand_over(self, record: Record) -> None:
        """A database that is away for long must not fill the memory with what was refused meanwhile."""
        if self.behind > MOST_BEHIND:
            # The lane's queue has no bound for what nobody waits for. The backlog has.
            self.backlog.keep(record.pairs)
            return
        self._put(record)

    def _put(self, record: Record) -> None:
        size = record.size
        self.counts(size)
        future: Future[None] = Future()
        self._unwritten.add(future)
        future.add_done_callback(partial(self._settled, record, size))
        bridge.put(record, future)

    def _settled(self, record: Record, size: int, future: Future[None]) -> None:
        """Keep exchanges that no lane took up; record_many sees to those that it could not write."""
        self._unwritten.discard(future)
        self.counts(-size)
        if error := future.exception():
            self.backlog.keep(record.pairs)
            log.warning("%d exchanges wait, for no lane took them up", len(record.pairs), exc_info=error)
            if record.again:
                self.offering.release()

    def counts(self, size: int) -> None:
        """Note that so much more, or less, waits; on any thread."""
        with self.counting:
            self.behind += size

    def offer(self) -> None:
        """Hand exchanges of the backlog to the write lane again. One offer is under way at a time."""
        if len(self.backlog) and self.offering.acquire(blocking=False):
            self._put(Record([], [], self.backlog.take(), again=True))

    def refused(self, pairs: Sequence[Pair], error: Exception, *, again: bool) -> None:
        """Keep exchanges that the database did not take because it is away, full or read-only."""
        if again:
            self.backlog.refused(pairs)
        else:
            self.backlog.keep(pairs)
            log.warning("%d exchanges wait for the database, which refused them: %s", len(self.backlog), error)

    def troubles(self) -> list[str]:
        """Return a sentence while exchanges wait for the database."""
        waiting = len(self.backlog)
        return [f"record: {waiting} calls wait to be recorded, see the log for why"] if waiting else []


recorder = Recorder()
"""The recorder of this process."""


def record_many(items: Sequence[Record]) -> list[None]:
    """Write the exchanges of all items.

    What the database does not take because it is away is kept for later. What it refuses for another reason is tried
    one by one, and what is refused then is lost, and counted.
    """
    new = [pair for item in items for pair in item.new]
    endings = [pair for item in items for pair in item.endings]
    doubtful = [pair for item in items for pair in item.doubtful]
    again = any(item.again for item in items)
    try:
        write(new, endings, doubtful)
    except AWAY as error:
        if not connection.in_atomic_block:
            connection.close()  # Its session may be read-only for ever.
        recorder.refused([*new, *endings, *doubtful], error, again=again)
        again = False
    except Exception:
        log.exception("%d exchanges could not be recorded together", len(new) + len(endings) + len(doubtful))
        for pair in new:
            _write_one([pair], [], [])
        for pair in endings:
            _write_one([], [pair], [])
        for pair in doubtful:
            _write_one([], [], [pair])
    finally:
        if any(item.again for item in items):
            recorder.offering.release()
    if again:
        recorder.backlog.taken()
        recorder.offer()
    return [None for _ in items]


def _write_one(*groups: list[Pair]) -> None:
    try:
        write(*groups)
    except Exception:
        recorder.backlog.lose()
        ((row, _),) = (pair for group in groups for pair in group)
        log.exception("exchange %s was not recorded", row.id)
