"""Refused calls of strangers, which are counted by address and minute. The first ones of each address and minute are
recorded as exchanges too, for those who look for what is wrong with a client."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from datetime import datetime
from functools import partial
from ipaddress import ip_network
from typing import Self

from django.db import connection
from msgspec import Struct

from a2a.errors import TooManyCalls
from tasks_app import clock
from tasks_app.callers.peers import network_of
from tasks_app.database.bridge import bridge
from tasks_app.database.sql import sql_time
from tasks_app.database.work import Work
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.limits import strangers
from tasks_app.models import Refusals

log = logging.getLogger(__name__)
RECORDED = 10
"""Refusals of one address in a minute that a process records as exchanges."""
ADDRESSES = 200
"""Addresses that a process counts apart in one minute."""
OTHERS, UNKNOWN = "others", "unknown"
"""The row of all further addresses, and that of calls whose address the server does not know."""
BEHIND = 1.0
"""Seconds by which the rows may lag behind the calls."""
MOST_ROWS = 10 * ADDRESSES
"""Counts that wait for the database. While it is away, those beyond this number are dropped."""


class Count(Struct):
    """The refused calls of one address in one minute. The members are columns."""

    unauthenticated: int = 0
    limited: int = 0
    invalid: int = 0
    recorded: int = 0

    def add(self, other: "Count") -> None:
        """Add another count to this one."""
        self.unauthenticated += other.unauthenticated
        self.limited += other.limited
        self.invalid += other.invalid
        self.recorded += other.recorded


Place = tuple[datetime, str]
"""A minute and an address."""
_COLUMNS = Count.__struct_fields__
_TABLE = Refusals._meta.db_table
_ADD = (
    f"insert into {_TABLE} (minute, address, {', '.join(_COLUMNS)}) values {{rows}} "
    "on conflict (minute, address) do update set "
    + ", ".join(f"{column} = {_TABLE}.{column} + excluded.{column}" for column in _COLUMNS)
)


class AddRefusals(Work[None], Struct, frozen=True):
    """Adds counts to the table."""

    lane = "write"

    counts: dict[Place, Count]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[None]:
        sums: dict[Place, Count] = {}
        for item in items:
            for place, count in item.counts.items():
                sums.setdefault(place, Count()).add(count)
        # In order, so that two processes cannot wait for each other.
        rows = [
            (sql_time(place[0]), place[1], *(getattr(sums[place], column) for column in _COLUMNS))
            for place in sorted(sums)
        ]
        with connection.cursor() as cursor:
            group = f"({', '.join(['%s'] * (2 + len(_COLUMNS)))})"
            cursor.execute(_ADD.format(rows=", ".join([group] * len(rows))), [value for row in rows for value in row])
        return [None for _ in items]


class Tally:
    """The counts of this process that are not yet in the table. Any thread may use it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting: dict[Place, Count] = {}
        self.minute: datetime | None = None
        self.totals: dict[str, int] = {}
        """The refusals of each address in the current minute."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop that will call flush(), or None. A loop that has ended never calls it."""
        self._futures: set[Future[None]] = set()
        """The futures of counts at the write lane."""

    def count(self, peer: str | None, status: int, *, has_exchange: bool = True) -> bool:
        """Count a refusal by its HTTP status; return whether it is among those that are recorded.

        A request that is no call, such as one to the OAuth server, has no exchange, so none of these is recorded.
        """
        minute = clock.now().replace(second=0, microsecond=0)
        with self.lock:
            if minute != self.minute:
                self.minute, self.totals = minute, {}
            address = self._row_of(peer)
            total = self.totals[address] = self.totals.get(address, 0) + has_exchange
            is_recorded = has_exchange and total <= RECORDED
            count = self.waiting.setdefault((minute, address), Count())
            count.add(_count_of(status, recorded=is_recorded))
            self._plan()
        return is_recorded

    def records(self, peer: str | None) -> bool:
        """Return whether the next refusal of an address is among those that are recorded."""
        with self.lock:
            return self.totals.get(self._row_of(peer), 0) < RECORDED

    def _row_of(self, peer: str | None) -> str:
        """Return the address in whose row a refusal is counted."""
        address = network_of(peer) or UNKNOWN
        return address if address in self.totals or len(self.totals) < ADDRESSES else OTHERS

    def _plan(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # A thread of a page. The routine of the process hands the counts over.
        if self.loop is not loop:
            self.loop = loop
            loop.call_later(BEHIND, self.flush)

    def flush(self) -> None:
        """Hand all counts to the write lane."""
        future: Future[None] = Future()
        with self.lock:
            self.loop = None
            if not self.waiting:
                return
            counts, self.waiting = self.waiting, {}
            self._futures.add(future)  # Under the lock, so that drain() waits for counts that another thread has taken.
        future.add_done_callback(partial(self._settle, counts))
        bridge.put(AddRefusals(counts), future)

    def drain(self, seconds: float) -> None:
        """Hand all counts over and wait until they are written, or until the seconds pass."""
        self.flush()
        with self.lock:
            futures = set(self._futures)
        wait(futures, seconds)

    def _settle(self, counts: dict[Place, Count], future: "Future[None]") -> None:
        """Keep counts that could not be written. They go with the next ones."""
        with self.lock:
            self._futures.discard(future)
        if (error := future.exception()) is None:
            return
        log.warning("refused calls of %d addresses wait to be counted: %s", len(counts), error)
        with self.lock:
            for place, count in counts.items():
                if place in self.waiting or len(self.waiting) < MOST_ROWS:
                    self.waiting.setdefault(place, Count()).add(count)


tally = Tally()
"""The tally of this process."""


def count_wrong(origin: str, peer: str | None, status: int = 401) -> None:
    """Count a wrong credential in a request that is no call, such as one to the OAuth server or for a file.

    `origin` is the address for limits of strangers, and `status` that of the refusal. Raises TooManyCalls for one
    wrong credential too many.
    """
    try:
        strangers.count_failure(origin)
    except TooManyCalls:
        tally.count(peer, 429, has_exchange=False)
        raise
    tally.count(peer, status, has_exchange=False)


def address_of_search(text: str) -> str:
    """Return the address that stands in a row for an IP address, or the text itself, such as "others"."""
    return network_of(text) or text


def is_address(text: str) -> bool:
    """Return whether a row can have the address of a search: an IP address or network, OTHERS or UNKNOWN."""
    if text in {OTHERS, UNKNOWN}:
        return True
    try:
        ip_network(text)
    except ValueError:
        return bool(network_of(text))
    return True


def _count_of(status: int, *, recorded: bool) -> Count:
    count = Count(recorded=int(recorded))
    if status in {401, 403}:
        count.unauthenticated = 1
    elif status == 429:
        count.limited = 1
    else:
        count.invalid = 1
    return count


def close_refused(exchange: OpenExchange, status: int) -> None:
    """Record a refused call. Those of strangers are counted, and only the first ones of an address are recorded."""
    if exchange.row.caller_id is not None or status >= 500 or tally.count(exchange.row.peer, status):
        recorder.close(exchange)
