"""The thread of a run that is not async. It cannot be stopped: it keeps its slot until it ends, even if its run has
ended before."""

import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class Seat:
    """One run's thread, taken from the threads of the process."""

    def __init__(self, threads: Executor) -> None:
        self.threads = threads
        self.work: Future[None] | None = None
        self.ident: int | None = None
        """The id of the thread, once it is at work."""

    def submit(self, function: Callable[..., None], /, *arguments: Any) -> Future[None]:
        self.work = self.threads.submit(self._sit, function, arguments)
        return self.work

    def _sit(self, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.ident = threading.get_ident()
        function(*arguments)

    def stack(self) -> str:
        """Return the stack of the thread, the innermost call last; empty if it is not at work."""
        frame = sys._current_frames().get(self.ident or 0) if self.is_busy else None
        return "".join(traceback.format_stack(frame)) if frame else ""

    @property
    def is_busy(self) -> bool:
        """True while the thread is at work."""
        return self.work is not None and not self.work.done()
