"""Finds the place where another thread, or a coroutine that waits, is at work: the run, and the line of its agent's
file."""

import gc
import inspect
import sys
import traceback
from asyncio.events import Handle
from collections.abc import Callable, Iterator, Sequence
from types import AsyncGeneratorType, FrameType
from typing import Any

from msgspec import Struct

from a2a.acting import act_now
from a2a.run import Run
from tasks_app.runner.execution import CURRENT, Execution


class Spot(Struct, frozen=True):
    """A line of source in a stack."""

    file: str
    line: int
    stack: str
    """The whole stack, the innermost call last."""

    @property
    def short(self) -> str:
        """The file's name and the line, without the folders of this machine."""
        return f"{self.file.rpartition('/')[2]}:{self.line}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def spot_of(frames: Sequence[FrameType], function: Callable[..., Any] | None) -> Spot | None:
    """Return the innermost line of the frames in the file of the function, else the innermost line; None without
    frames."""
    if not frames:
        return None
    file = inspect.unwrap(function).__code__.co_filename if function is not None else ""
    frame = next((frame for frame in frames if frame.f_code.co_filename == file), frames[0])
    lines = traceback.StackSummary.extract((item, item.f_lineno or 0) for item in reversed(frames))
    return Spot(frame.f_code.co_filename, frame.f_lineno or 0, "".join(lines.format()))


def run_on(frames: Sequence[FrameType]) -> Execution | None:
    """Return the run that the thread of an event loop is at, also within a task or callback that its agent made."""
    for frame in frames:
        if frame.f_code is Handle._run.__code__:
            # asyncio runs each step in the context of its task, which no public function gives before Python 3.12.
            context = getattr(frame.f_locals.get("self"), "_context", {})
            run: Execution | None = context.get(CURRENT)
            return run
    return None


def find_local(thread: int | None, function: Callable[..., Any], name: str) -> Any:
    """Return the value of a local variable of the function in the stack of the thread; None if it is not there."""
    for frame in frames_of(thread):
        if frame.f_code is function.__code__:
            return frame.f_locals.get(name)
    return None


def thread_of(run: Run) -> int | None:
    """Return the thread in which a sync agent works on the run; None if there is none."""
    return next((thread for thread in sys._current_frames() if find_local(thread, act_now, "run") is run), None)


def frames_of(thread: int | None) -> list[FrameType]:
    """Return the frames of the thread, innermost first; none if it has ended."""
    frames, frame = [], sys._current_frames().get(thread or 0)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def waiting_frames(coroutine: object) -> list[FrameType]:
    """Return the frames of a coroutine that waits, innermost first."""
    return list(_awaited_frames(coroutine))[::-1]


def _awaited_frames(awaited: object) -> Iterator[FrameType]:
    """Yield the frame of each coroutine and async generator that is awaited, outermost first."""
    while awaited is not None:
        prefix = "ag" if isinstance(awaited, AsyncGeneratorType) else "cr"
        frame: FrameType | None = getattr(awaited, f"{prefix}_frame", None)
        if frame is not None:
            yield frame
            awaited = getattr(awaited, f"{prefix}_await")
        else:
            # Only the garbage collector knows which generator a step of an async generator belongs to.
            awaited = next((item for item in gc.get_referents(awaited) if isinstance(item, AsyncGeneratorType)), None)
