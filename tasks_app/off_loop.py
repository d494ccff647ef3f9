"""Work of Python that takes long enough to be noticed by others: done in threads of its own, off the event loop."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

T = TypeVar("T")

LARGE = 16_384
"""Bytes above which JSON is read, understood and redacted off the loop."""
SWITCH_SECONDS = 0.0005
"""How long a thread has the interpreter, while something large is done and others wait for it. An event loop gives it
up with each thing that it does, and waits as long to get it back: with Python's 5 ms, several times in each call. At
other times so many turns would cost more than they give."""
_threads = ThreadPoolExecutor(2, thread_name_prefix="large")
"""Not asyncio's own: agents may block those."""


class Switches:
    """How often the threads of this process take turns at the interpreter."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.large = 0
        """Large works that are under way."""
        self.usual = 0.0

    @contextmanager
    def often(self) -> Iterator[None]:
        """Let threads take turns often for the length of the block, in which something large is done."""
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
"""The switches of this process."""


async def off_loop(function: Callable[..., T], *arguments: object) -> T:
    """Return what the function returns, or raise what it raises."""
    return await asyncio.get_running_loop().run_in_executor(_threads, partial(_largely, function, *arguments))


def _largely(function: Callable[..., T], *arguments: object) -> T:
    with switches.often():
        return function(*arguments)
