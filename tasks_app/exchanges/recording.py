"""The recorder writes the halves of exchanges that were not stored with a change, most of them after the answer.

A failure to record never changes an answer. It is counted and logged.
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

from tasks_app import counters
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import log_error
from tasks_app.database.work import Work
from tasks_app.exchanges.backlog import Backlog, Halves, size_of
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recent import recent_calls
from tasks_app.exchanges.storage import write

log = logging.getLogger(__name__)
BEHIND = 0.05
"""Seconds by which recording may lag behind an answer."""
MOST_BEHIND = 8_000_000
"""Bytes of exchanges that may wait for the write lane, roughly. Further ones join the backlog."""


class Record(Work[None], Struct, frozen=True):
    """Exchanges to write: whole new ones, endings of exchanges whose request half is stored, and doubtful ones, whose
    request half may be stored."""

    lane = "write"

    new: list[Halves]
    endings: list[Halves]
    doubtful: list[Halves] = []
    again: bool = False
    """Whether the exchanges come from the backlog."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[None]:
        return record_many(items)

    @property
    def pairs(self) -> list[Halves]:
        return [*self.new, *self.endings, *self.doubtful]

    @property
    def size(self) -> int:
        """The bytes that it takes in memory, roughly."""
        return sum(map(size_of, self.pairs))


AWAY = (OperationalError, InterfaceError, InternalError)
"""Errors of a database that may accept the same rows later."""


class Recorder:
    """Collects closed exchanges and writes them in groups, behind the answers."""

    def __init__(self) -> None:
        self.queue: list[OpenExchange] = []
        """Closed exchanges that flush() will hand over."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop that will call flush(), or None. A loop that has ended never calls it."""
        self.behind = 0
        """Bytes of exchanges at the write lane, roughly."""
        self.backlog = Backlog()
        self.offer_lock = threading.Lock()
        """Locked while an offer of the backlog is at the write lane."""
        self._count_lock = threading.Lock()
        self._queue_lock = threading.Lock()
        """Without it, one loop could add an exchange to a list that another thread has handed over."""
        self._futures: set[Future[None]] = set()
        """The futures of records at the write lane."""

    @property
    def losses(self) -> int:
        """Exchanges since the start that could not be written."""
        return self.backlog.losses

    def close(self, exchange: OpenExchange) -> None:
        """Record an exchange that has its answer, unless both halves were stored with the change.

        Call it on the loop of the door."""
        if exchange.agent:
            outcome = "answered" if exchange.row.code is None else "failed"
            counters.agent_calls.add((exchange.agent, outcome))
            counters.agent_time.add((exchange.agent,), exchange.row.duration_us or 0)
        _count(exchange)
        if exchange.is_written and exchange.answer is not None:
            return
        loop = asyncio.get_running_loop()
        with self._queue_lock:
            self.queue.append(exchange)
            if self.loop is not loop:
                self.loop = loop
                loop.call_later(BEHIND, self.flush)

    def open(self, exchange: OpenExchange) -> None:
        """Record the request half now, unless it was stored with the change, and drop it.

        Operators see a stream or a call that waits while it is open. It may be open for long, and keeps no request in
        memory.
        """
        if not exchange.is_written:
            self._hand_over(Record([Halves(exchange.row, exchange.body)], []))
            exchange.is_written = True
        exchange.lighten()

    def flush(self) -> None:
        """Hand all closed exchanges to the write lane."""
        with self._queue_lock:
            queue, self.queue = self.queue, []
            self.loop = None
        if queue:
            record = Record([], [], [])
            for exchange in queue:
                if exchange.is_doubtful:
                    group = record.doubtful
                else:
                    group = record.endings if exchange.is_written else record.new
                group.append(Halves(exchange.row, exchange.body, exchange.last_entry()))
            self._hand_over(record)

    def drain(self, seconds: float) -> bool:
        """Hand everything over and wait until it is written. Return false if the seconds pass before that, or the
        database is away.

        A further work item would be no sign of the end: a lane takes the kinds of work in turn, so the item might be
        done before the records.
        """
        ends = time.monotonic() + seconds
        self.flush()
        while futures := list(self._futures):  # The backlog makes its next offer when the last one was accepted.
            if wait(futures, max(0.0, ends - time.monotonic())).not_done:
                return False
        return not len(self.backlog)

    def _hand_over(self, record: Record) -> None:
        """Hand a record to the write lane, or to the backlog if too much waits at the lane.

        The lane's queue has no bound for work that no call waits for. While a database is away for long, it would fill
        the memory. The backlog has a bound.
        """
        if self.behind > MOST_BEHIND:
            self.backlog.keep(record.pairs)
            return
        self._put(record)

    def _put(self, record: Record) -> None:
        size = record.size
        self._count(size)
        future: Future[None] = Future()
        self._futures.add(future)
        future.add_done_callback(partial(self._settle, record, size))
        bridge.put(record, future)

    def _settle(self, record: Record, size: int, future: Future[None]) -> None:
        """Note that the lane is done with a record. If the lane failed before record_many(), keep its exchanges."""
        self._futures.discard(future)
        self._count(-size)
        if error := future.exception():
            self.backlog.keep(record.pairs)
            log_error(log, error, "%d exchanges wait, because the write lane did not take them", len(record.pairs))
            if record.again:
                self.offer_lock.release()

    def _count(self, size: int) -> None:
        """Add a size, which may be negative, to what is at the write lane. Any thread may call it."""
        with self._count_lock:
            self.behind += size

    def offer(self) -> None:
        """Offer exchanges of the backlog to the database again, unless an offer is at the write lane."""
        if len(self.backlog) and self.offer_lock.acquire(blocking=False):
            self._put(Record([], [], self.backlog.take(), again=True))

    def keep(self, pairs: Sequence[Halves], error: Exception, *, again: bool) -> None:
        """Keep exchanges that the database refused because it is away, full or read-only."""
        if again:
            self.backlog.put_back(pairs)
        else:
            self.backlog.keep(pairs)
            log.warning("%d exchanges wait for the database, which refused them: %s", len(self.backlog), error)

    def troubles(self) -> list[str]:
        """Return a sentence while exchanges wait for the database."""
        number = len(self.backlog)
        return [f"record: {number} calls wait to be recorded, see the log for why"] if number else []


def _count(exchange: OpenExchange) -> None:
    """Count a call by its outcome. The time of a stream is that of its task, and is no time of an answer."""
    row = exchange.row
    failed = row.code is not None
    counters.calls.add(("failed" if failed else "answered",))
    duration_us = None if row.frames or row.outcome == "stream" else row.duration_us
    recent_calls.add(time.monotonic(), duration_us, failed=failed)


recorder = Recorder()
"""The recorder of this process."""


def record_many(items: Sequence[Record]) -> list[None]:
    """Write the exchanges of all items.

    If the database is away, they are kept for later. If it refuses them for another reason, each is tried alone, and an
    exchange that is refused again is dropped and counted.
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
        recorder.keep([*new, *endings, *doubtful], error, again=again)
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
            recorder.offer_lock.release()
    if again:
        recorder.backlog.enlarge_offer()
        recorder.offer()
    return [None for _ in items]


def _write_one(*groups: list[Halves]) -> None:
    try:
        write(*groups)
    except Exception:
        recorder.backlog.lose()
        ((row, _, _),) = (pair for group in groups for pair in group)
        log.exception("exchange %s was not recorded", row.id)
