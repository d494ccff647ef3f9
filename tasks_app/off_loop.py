"""Python code that runs long enough to delay other callers, in threads of its own instead of the event loop."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

T = TypeVar("T")

LARGE = 16_384
"""Bytes above which JSON is parsed, decoded and redacted off the loop."""
SWITCH_SECONDS = 0.0005
"""How long a thread keeps the interpreter lock during large work while other threads wait for it.

An event loop gives up the lock with each system call, and waits this long to get it back, several times in each call.
Python's 5 ms would delay all callers. Without large work so many switches would cost more than they gain."""
SHORTEST_WORK = 0.001
"""Seconds of work after which a rest is due. The shortest sleep costs a tenth of that."""
REST_SHARE, LONGEST_REST = 3.0, 0.03
"""The rest after a step of large work: its share of the time of the step, and the most seconds. A step that took longer
waited for something else."""
TURN_SECONDS = 0.05
"""Seconds for which a thread waits for its turn. The thread that has it may wait for a database that is away."""
NICE = 5
"""The nice value of threads for large work."""


def lower_priority() -> None:
    """Let other threads and processes go first when there are fewer processors than threads at work.

    On Linux each thread has a nice value. Elsewhere, and where a sandbox forbids it, the thread stays as it is.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


_threads = ThreadPoolExecutor(2, thread_name_prefix="large", initializer=lower_priority)
"""The threads. Those of asyncio's default executor would not do, because agents may block them."""


class Switches:
    """The switch interval of this process, which is short while large work is under way."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.large = 0
        """Blocks of large work under way."""
        self.usual = 0.0

    @contextmanager
    def often(self) -> Iterator[None]:
        """Switch threads often for the length of the block, which does large work."""
        with self.lock:
            self.large += 1
            if self.large == 1:
                self.usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self.usual, SWITCH_SECONDS))
        try:
            yield
        finally:
            with self.lock:
                self.large -= 1
                if not self.large:
                    sys.setswitchinterval(self.usual)


switches = Switches()
"""The switch interval of this process."""


class Turn:
    """The turn to do large work, which one thread of the process has at a time.

    A small call waits for the interpreter lock up to ten times. If several threads did large work at once, they would
    take the lock from each other, and the call would wait for all of them each time.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.local = threading.local()

    @contextmanager
    def mine(self) -> Iterator[None]:
        """Do the block in turn. A thread that has waited for TURN_SECONDS goes on without the turn."""
        self.local.is_mine = self.lock.acquire(timeout=TURN_SECONDS)
        try:
            yield
        finally:
            self._give_away()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Leave the turn of this thread, if it has one, to others for the length of the block."""
        was_mine = self._give_away()
        yield
        if was_mine:
            self.local.is_mine = self.lock.acquire(timeout=TURN_SECONDS)

    def _give_away(self) -> bool:
        was_mine: bool = getattr(self.local, "is_mine", False)
        self.local.is_mine = False
        if was_mine:
            self.lock.release()
        return was_mine


turn = Turn()
"""The turn of the threads of this process."""


@contextmanager
def large_work() -> Iterator[None]:
    """Do large work in the block: in turn with other such work, while threads switch often."""
    with switches.often(), turn.mine():
        yield


_work = threading.local()
"""The pace of the large work of a thread."""


class Pace:
    """The pace of large work that is done in steps. It leaves three quarters of the time to other threads.

    Without rests a small call waits for the interpreter lock up to ten times. During one rest it is done from end to
    end.
    """

    def __init__(self) -> None:
        self.since = time.perf_counter()

    def rest(self) -> None:
        """Sleep for REST_SHARE of the time since the last rest, once that is SHORTEST_WORK. Shorter steps add up."""
        seconds = time.perf_counter() - self.since
        if seconds < SHORTEST_WORK:
            return
        with turn.pause():
            time.sleep(min(REST_SHARE * seconds, LONGEST_REST))
        self.since = time.perf_counter()


def rest() -> None:
    """Rest, on a thread for large work; elsewhere do nothing."""
    pace: Pace | None = getattr(_work, "pace", None)
    if pace is not None:
        pace.rest()


async def off_loop(function: Callable[..., T], *arguments: object) -> T:
    """Call the function in a thread; return its result or raise its error."""
    return await asyncio.get_running_loop().run_in_executor(_threads, partial(_run_large, function, *arguments))


def _run_large(function: Callable[..., T], *arguments: object) -> T:
    with large_work():
        _work.pace = Pace()
        return function(*arguments)
