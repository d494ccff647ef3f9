"""Finds the place where another thread is at work: the run, and the line of its agent's file."""

import inspect
import sys
import traceback
from asyncio.events import Handle
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from msgspec import Struct

from tasks_app.runner.execution import CURRENT, Execution


class Spot(Struct, frozen=True):
    """A line of source in the stack of a thread."""

    file: str
    line: int
    stack: str
    """The whole stack of the thread, the innermost call last."""

    @property
    def short(self) -> str:
        """The file's name and the line, without the folders of this machine."""
        return f"{self.file.rpartition('/')[2]}:{self.line}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def spot_of(thread: int | None, function: Callable[..., Any] | None) -> Spot | None:
    """Return the innermost line of the thread in the file of the function, else its innermost line; None if the thread
    has ended."""
    frames = list(_frames(thread))
    if not frames:
        return None
    file = inspect.unwrap(function).__code__.co_filename if function is not None else ""
    frame = next((frame for frame in frames if frame.f_code.co_filename == file), frames[0])
    stack = "".join(traceback.format_stack(frames[0]))
    return Spot(frame.f_code.co_filename, frame.f_lineno or 0, stack)


def run_on(thread: int | None) -> Execution | None:
    """Return the run that the thread of an event loop is at, also within a task or callback that its agent made."""
    for frame in _frames(thread):
        if frame.f_code is Handle._run.__code__:
            # asyncio runs each step in the context of its task, which no public function gives before Python 3.12.
            context = getattr(frame.f_locals.get("self"), "_context", {})
            run: Execution | None = context.get(CURRENT)
            return run
    return None


def find_local(thread: int | None, function: Callable[..., Any], name: str) -> Any:
    """Return the value of a local variable of the function in the stack of the thread; None if it is not there."""
    for frame in _frames(thread):
        if frame.f_code is function.__code__:
            return frame.f_locals.get(name)
    return None


def _frames(thread: int | None) -> Iterator[FrameType]:
    """Yield the frames of the thread, innermost first."""
    frame = sys._current_frames().get(thread or 0)
    while frame is not None:
        yield frame
        frame = frame.f_back
