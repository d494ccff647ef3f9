"""Exchanges: every call next to its answer. Written with the change where there is one, else behind the answer.

A failure to record never changes an answer: it is counted and logged.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import nullcontext
from functools import partial
from typing import Any

import orjson
from django.db import InterfaceError, InternalError, OperationalError, connection, transaction
from msgspec import UNSET, Struct, UnsetType

from a2a.dialects.shape import Result, TaskPage
from a2a.jsonrpc import Id
from tasks_app import clock
from tasks_app.access import Caller
from tasks_app.backlog import Backlog, Pair
from tasks_app.bridge import KINDS, Kind, bridge
from tasks_app.ids import uuid7
from tasks_app.masking import masked_id
from tasks_app.redaction import redacted, without_files
from tasks_app.rows import (
    BODIES,
    DOUBTFUL_BODIES,
    DOUBTFUL_EXCHANGES,
    EXCHANGES,
    BodyRow,
    ExchangeRow,
    as_json,
    on_postgres,
)
from tasks_app.statements import prepared

log = logging.getLogger(__name__)
BEHIND = 0.05
"""Seconds by which recording may lag behind an answer."""
BARE = "rest"
"""The door whose calls have no envelope: their params are recorded, and their answers as they are."""
MOST_BEHIND = 16_000_000
"""Characters of exchanges that may wait for the database."""
ROW_SIZE = 2_000
"""About what the row of an exchange takes in memory."""
LIST_BYTES = 16_384
"""Answers to lists up to this are recorded as they are."""
_KINDS_OF_ID = {str: "string", int: "number", float: "number", type(None): "null", UnsetType: "absent"}
_ENDINGS = (
    "outcome", "code", "http_status", "duration_us", "response_bytes", "frames", "first_seq", "last_seq", "task_id",
    "context_id",
)  # fmt: skip


class OpenExchange:
    """A call that is being answered."""

    def __init__(self, *, door: str, request_id: str, rpc_id: Id | UnsetType, request: bytes, trace: str = "") -> None:
        self.began = time.perf_counter()
        self.written = False
        """The request half was stored with the change."""
        self.doubtful = False
        """Or it was not: the call failed, and with it the change, it may be."""
        self.encode: Callable[[Result], bytes] | None = None
        """Set by the door: the whole answer of a result, so that both halves can be stored with the change."""
        self.answer: bytes | None = None
        """The encoded answer, once it was needed."""
        now = clock.now()
        self.row = ExchangeRow(
            id=uuid7(), request_id=request_id, rpc_id=_id_text(rpc_id), rpc_id_type=_KINDS_OF_ID[type(rpc_id)],
            door=door, trace=trace, created_at=now, request_bytes=len(request),
        )  # fmt: skip
        self._request = request
        self.body = BodyRow(exchange_id=self.row.id, request="")

    @property
    def request_id(self) -> str:
        """The id of the request as the caller is told."""
        return self.row.request_id or self.row.id

    @property
    def _is_about_webhooks(self) -> bool:
        """Its request and its answer name addresses that may be secrets of those who receive there."""
        return "ushNotificationConfig" in self.row.method

    def asked_by(self, caller: Caller) -> None:
        """The caller is known; only now is the content kept."""
        self.row.caller_id, self.row.tenant_id = caller.owner_id, caller.tenant_id
        self.asks(self._request)

    def asks(self, request: bytes) -> None:
        """Keep the whole request of an authenticated caller, where that is more than the body."""
        self.body.request = redacted(without_files(request), webhooks=self._is_about_webhooks)

    def about(self, task_id: str | None, context_id: str | None = None, seq: int | None = None) -> None:
        """Which task it was about, as of which event."""
        if task_id is not None:
            self.row.task_id = task_id[:36]
        if context_id is not None:
            self.row.context_id = masked_id(context_id[:255])
        if seq is not None:
            self.row.last_seq = seq

    def halves(self, result: Result | None) -> tuple[ExchangeRow, BodyRow]:
        """Return the rows stored with a change: the request half, and the other if there is a result already."""
        self.written = True
        if result is not None and self.encode is not None:
            self.answer = self.encode(result)
            self.end("result", self.answer)
        return self.row, self.body

    def stored(self, row: ExchangeRow | None) -> None:
        """Whether the halves went with the change: the row is gone from an item whose exchange was refused."""
        if row is None:
            self.unwritten()

    def unwritten(self) -> None:
        """Nothing was stored with a change after all."""
        self.written, self.answer, self.row.response_bytes = False, None, 0

    def lighten(self) -> None:
        """Drop the request, which is stored or about to be: an answer that is long in coming keeps none in memory."""
        self._request, self.body = b"", BodyRow(exchange_id=self.row.id, request="")

    def failed(self) -> None:
        """The call did, after its halves went with a change, it may be; nobody knows what became of that."""
        self.doubtful, self.answer, self.row.response_bytes = self.written, None, 0

    def end(self, outcome: str, answer: bytes = b"", *, code: int | None = None, status: int | None = 200) -> None:
        """How it was answered; without a status if nobody was there to be told."""
        row = self.row
        row.outcome, row.code, row.http_status = outcome, code, status
        row.duration_us = int((time.perf_counter() - self.began) * 1_000_000)
        row.response_bytes = row.response_bytes or len(answer)

    def keep(self, answer: bytes) -> None:
        """Stores the answer as it is: it cannot be derived from the log."""
        self.body.response = redacted(answer, webhooks=self._is_about_webhooks)

    def keep_list(self, answer: bytes, page: TaskPage) -> None:
        """Store the answer to a list; of a large one the ids of its tasks, which are stored themselves."""
        if len(answer) <= LIST_BYTES:
            self.keep(answer)
            return
        ids = [task.id for task in page.tasks]
        shown = {
            "tasks": ids,
            "totalSize": page.total_size,
            "omitted": f"the other members, of {len(answer)} bytes in all",
        }
        self.body.response = orjson.dumps(shown).decode()


def _id_text(rpc_id: Id | UnsetType) -> str | None:
    if rpc_id is UNSET or rpc_id is None:
        return None
    if isinstance(rpc_id, str):
        return masked_id(rpc_id[:255]).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return str(rpc_id)[:255]


class Record(Struct, frozen=True):
    """Exchanges to write: new ones whole, the endings of those whose request half is there, and both of those of which
    nobody knows."""

    new: list[Pair]
    endings: list[Pair]
    doubtful: list[Pair] = []
    again: bool = False
    """They are from the backlog."""

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
        _write(new, endings, doubtful)
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
        _write(*groups)
    except Exception:
        recorder.backlog.lose()
        ((row, _),) = (pair for group in groups for pair in group)
        log.exception("exchange %s was not recorded", row.id)


def _write(new: Sequence[Pair], endings: Sequence[Pair], doubtful: Sequence[Pair]) -> None:
    endings = [*endings, *doubtful]
    answers = [(body.response, body.exchange_id) for _, body in endings if body.response]
    # Most groups are endings alone: on PostgreSQL one statement, which needs no transaction around it.
    alone = on_postgres() and not new and not doubtful and not answers
    with nullcontext() if alone else transaction.atomic(), prepared() as cursor:
        EXCHANGES.write(cursor, [row for row, _ in new])
        BODIES.write(cursor, [body for _, body in new])
        DOUBTFUL_EXCHANGES.write(cursor, [row for row, _ in doubtful])
        DOUBTFUL_BODIES.write(cursor, [body for _, body in doubtful])
        if endings and on_postgres():
            rows = [row for row, _ in endings]
            cursor.execute(_END_POSTGRES, (as_json(rows), [row.id for row in rows]))
        elif endings:
            cursor.executemany(_END_SQLITE, [_ending(row) for row, _ in endings])
        if answers:
            cursor.executemany(f"update {BODIES.name} set response = %s where exchange_id = %s", answers)


# The ids are given apart as well: of a recordset PostgreSQL expects a hundred rows, and reads the whole table for them.
_END_POSTGRES = (
    f"update {EXCHANGES.name} e set {', '.join(f'{name} = x.{name}' for name in _ENDINGS)} "
    f"from jsonb_to_recordset(%s::jsonb) as x({EXCHANGES.record}) where e.id = x.id and e.id = any(%s)"
)
_END_SQLITE = f"update {EXCHANGES.name} set {', '.join(f'{name} = %s' for name in _ENDINGS)} where id = %s"


def _ending(row: ExchangeRow) -> tuple[Any, ...]:
    return (*(getattr(row, name) for name in _ENDINGS), row.id)


KINDS[Record] = Kind(lane="write", perform=record_many)
