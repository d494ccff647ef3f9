"""The thread of a run that is not async. A thread cannot be stopped: until it ends it keeps its slot, whatever has
become of the run."""

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
        """The thread's, once it is at work."""

    def submit(self, function: Callable[..., None], /, *arguments: Any) -> Future[None]:
        self.work = self.threads.submit(self._sit, function, arguments)
        return self.work

    def _sit(self, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.ident = threading.get_ident()
        function(*arguments)

    def stack(self) -> str:
        """Where the thread is at work just now, the innermost call last; empty when it is not."""
        frame = sys._current_frames().get(self.ident or 0) if self.taken else None
        return "".join(traceback.format_stack(frame)) if frame else ""

    @property
    def taken(self) -> bool:
        """Whether the thread is at work."""
        return self.work is not None and not self.work.done()
