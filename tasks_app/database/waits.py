"""Waits for the database: deadlines of work items, and callers who leave."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, ClassVar

from django.conf import settings
from msgspec import Struct

from tasks_app.database.errors import Busy
from tasks_app.database.work import Work

LOOK = 0.25
"""Seconds between two looks at the waits."""
MOST_LATE, REST = 32, 0.005
"""Waits that one look ends because of their deadline, and seconds until the next look if there are more. Each of them
leads to a refusal, and thousands in one round of the loop would hold up the calls of others."""
WATCH_AFTER = 0.5
"""Seconds of a wait after which it is watched whether the caller has left. Most have their answer by then."""
UNLIMITED = float("inf")
"""The patience of work whose result must not be lost: a claim without a result is a task without a worker."""


class CallerLeft(Exception):
    """The caller has left before the answer was due."""


AnyFuture = Future[Any] | asyncio.Future[Any]


class Waiting(Struct, eq=False, kw_only=True):
    """A caller's wait, with its deadline."""

    lack: ClassVar[str]
    """The words of the error after the deadline, about what has not come."""

    future: AnyFuture | None = None
    since: float = 0.0
    ends: float = UNLIMITED
    departure: Callable[[], Awaitable[None]] | None = None
    """Ends when the caller has left."""
    leaving: "asyncio.Future[None] | None" = None

    def late(self, now: float) -> Busy:
        """Return the error for its caller after the deadline."""
        return Busy(detail=f"{self.lack} within {now - self.since:.0f} s")


class Entry(Waiting, eq=False):
    """A work item in the queue of a lane, with the future for its result."""

    lack = "no answer from the database"

    item: Work[Any]
    loop: asyncio.AbstractEventLoop | None = None
    patient: bool = False
    """True for work of our own, which a full lane takes in: its amount is bounded elsewhere."""

    @property
    def is_patient(self) -> bool:
        """True if a full lane takes it in, because it is work of our own or its caller must get the result."""
        return self.patient or self.item.patient

    @property
    def over(self) -> bool:
        """True once its caller waits no more."""
        return self.future is not None and self.future.done()


class Waits:
    """The waits of one event loop. One timer looks at all of them, because a timer for each call would cost every
    call."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.entries: dict[int, Waiting] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.patience = settings.A2A_CALL_SECONDS
        """The patience of callers as of the last look. Reading the setting would cost a call more than all else
        here."""

    def seconds(self, patience: float | None) -> float:
        """Return the longest wait of callers, or of work of our own with a patience."""
        if self.timer is None:
            self._look_later()
        return self.patience if patience is None else max(self.patience, patience)

    def add(self, entry: Waiting) -> None:
        self.entries[id(entry)] = entry
        if self.timer is None:
            self._look_later()

    def remove(self, entry: Waiting) -> None:
        """Remove an entry with its result. The timer goes on until it finds none, because the next entry is near."""
        self.entries.pop(id(entry), None)
        if entry.leaving is not None:
            entry.leaving.cancel()

    def _look_later(self, seconds: float = LOOK) -> None:
        self.patience = settings.A2A_CALL_SECONDS
        self.timer = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        if not self.entries:
            self.timer = None
            return
        now, late = time.monotonic(), 0
        for entry in list(self.entries.values()):
            future = entry.future
            if future is None or future.done():
                continue
            if now >= entry.ends:
                if late == MOST_LATE:
                    self._look_later(REST)
                    return
                late += 1
                future.set_exception(entry.late(now))
            elif entry.departure is not None and entry.leaving is None and now - entry.since >= WATCH_AFTER:
                entry.leaving = asyncio.ensure_future(_watch(entry.departure, future))
        self._look_later()


async def _watch(departure: Callable[[], Awaitable[None]], future: AnyFuture) -> None:
    await departure()
    if not future.done():
        future.set_exception(CallerLeft())
