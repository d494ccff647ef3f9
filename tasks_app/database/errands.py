"""Errands: work without a waiting caller, which must be done all the same.

An errand is repeated while other transactions hold locks, and if it is repeatable, also while the database is away.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any

from tasks_app.database.bridge import bridge
from tasks_app.database.errors import AWAY
from tasks_app.database.locks import LockRefused, pauses
from tasks_app.database.work import NotDone, R, Work

log = logging.getLogger(__name__)
PATIENCE = 60.0
"""Seconds for which an item is repeated."""


def _ignore(result: object) -> None:
    """Do nothing, for an errand whose result no work needs."""


def insist(item: Work[R], then: Callable[[R | None], object] = _ignore) -> None:
    """Have the item done, without waiting. Any thread may call it. An item that was not done in time is logged.

    `then` is called with the result on the thread of a lane, or with None for an item that was not done.
    """
    _put(item, then, pauses(PATIENCE))


def _put(item: Work[R], then: Callable[[R | None], object], waits: Iterator[float]) -> None:
    future: Future[Any] = Future()
    future.add_done_callback(partial(_look, item, then, waits))
    bridge.put(item, future)


def _look(item: Work[R], then: Callable[[R | None], object], waits: Iterator[float], future: "Future[Any]") -> None:
    """Repeat an item that was not done. Called on the thread of a lane, which must not wait."""
    error = future.exception()
    if error is None and not isinstance(future.result(), NotDone):
        then(future.result())
        return
    if error is None or (item.repeatable and isinstance(error, AWAY)):
        try:
            timer = threading.Timer(next(waits), _put, (item, then, waits))
        except LockRefused as late:
            error = error or late
        else:
            timer.daemon = True
            timer.start()
            return
    log.error("%r was not done: %s", item, error)
    then(None)
