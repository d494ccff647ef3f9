"""Runs a coroutine within the asyncio task of its caller for a limited time, and leaves it behind if it goes on.

An asyncio task of its own would begin one round of the event loop later, which would cost a sixth of the sends a second
to quick agents. A coroutine that is awaited within the task of the caller, and catches its cancellation, would keep the
caller waiting. So each step of the coroutine is done here, where the wait can be given up.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any

Steps = Coroutine[Any, Any, None]
Awaited = asyncio.Future[Any] | None
"""The future that a coroutine waits for after a step; None stands for the next round of the loop."""


class Driver:
    """One coroutine with a limit of time. `await driver` returns whether it has ended in time, and raises its errors.

    At the limit it is cancelled, as by `asyncio.timeout`. If it goes on for longer than the grace, it gets an asyncio
    task of its own. Limit and grace are in seconds.

    An `asyncio.timeout` or TaskGroup of the coroutine cancels the task of its caller, too. Nothing tells such a
    cancellation from the caller's own, so each one within the grace counts as the coroutine's, which gets it and has
    the rest of the grace. A caller that leaves within the grace is answered like any other. A limit that ends after the
    grace cancels the caller if its task is still at work.

    A coroutine that cancels the current task in one of its steps gets that cancellation, and the caller does not.
    """

    def __init__(self, steps: Steps, seconds: float, grace: float) -> None:
        self.steps = steps
        self.seconds, self.grace = seconds, grace
        self.on_expiry: Callable[[], object] = lambda: None
        """Called at the limit, before the cancellation reaches the coroutine."""
        self.on_leave: Callable[[asyncio.Task[None]], object] = lambda task: None
        """Called with the new asyncio task of a coroutine that is left behind."""
        self.has_expired = False
        self.deadline: float | None = None
        """The end of the grace, by the clock of the loop, once the coroutine has been cancelled at its limit."""
        self.earlier = 0
        """The cancellations of the task that were under way at the limit."""
        self.own = 0
        """The cancellations that the coroutine has ordered in its steps, and has not got yet."""

    def __await__(self) -> Generator[Any, Any, bool]:
        if (task := asyncio.current_task()) is None:
            raise RuntimeError("a driver is awaited in an asyncio task, which it cancels at the limit")
        before = task.cancelling()
        try:
            awaited = self._step(task)
        except StopIteration:
            return True  # Most agents end in their first step, and need no timer.
        self.loop = asyncio.get_running_loop()
        timer = self.loop.call_later(self.seconds, self._expire, task)
        try:
            yield from self._go_on(task, awaited)
        except GeneratorExit:
            self.steps.close()
            raise
        except (Exception, asyncio.CancelledError):
            if not self.has_expired:
                raise
        finally:
            timer.cancel()
        if self.has_expired:
            self._take_back(task, before)
        return not self.has_expired

    def _take_back(self, task: asyncio.Task[Any], before: int) -> None:
        """Take back the cancellation at the limit, and those within the grace. Raises CancelledError if one from before
        the limit is still under way: the caller was cancelled, too."""
        rest = max(before, min(self.earlier, task.cancelling() - 1))
        while task.cancelling() > rest:
            task.uncancel()
        if rest > before:
            raise asyncio.CancelledError

    def _expire(self, task: asyncio.Task[Any]) -> None:
        self.has_expired = True
        self.earlier = task.cancelling()
        self.on_expiry()
        task.cancel()

    def _go_on(self, task: asyncio.Task[Any], awaited: Awaited) -> Generator[Any, Any, None]:
        """Wait, and do the steps that follow, until the coroutine ends or its grace is over."""
        while True:
            error, is_ready = None, True
            try:
                is_ready = yield from self._wait(awaited)
            except asyncio.CancelledError as cancellation:
                self._take_back_own(task)
                if self.has_expired and self.deadline is None:
                    self.deadline = self.loop.time() + self.grace
                if awaited is not None and awaited.cancel():
                    continue  # As in a task, the cancellation goes to the future, and comes back from it.
                error = cancellation
            # The timer of the grace may end a moment before the deadline. The coroutine takes no step before its future
            # has an outcome.
            if not is_ready or (self.deadline is not None and self.loop.time() >= self.deadline):
                self._leave(awaited)
                return
            try:
                awaited = self._step(task, error)
            except StopIteration:
                return

    def _step(self, task: asyncio.Task[Any], error: BaseException | None = None) -> Awaited:
        """Do a step of the coroutine, and count the cancellations that it orders. Raises StopIteration at its end."""
        before = task.cancelling()
        try:
            awaited: Awaited = self.steps.send(None) if error is None else self.steps.throw(error)
            return awaited
        finally:
            self.own += max(0, task.cancelling() - before)

    def _take_back_own(self, task: asyncio.Task[Any]) -> None:
        """Take back the coroutine's own cancellations from the caller, because it gets them now."""
        for _ in range(self.own):
            task.uncancel()
        self.own = 0

    def _wait(self, awaited: Awaited) -> Generator[Any, Any, bool]:
        """Wait for the future, but not beyond the grace. Return whether the coroutine can go on.

        The coroutine takes the outcome of the future with its next step. If the task waited for the future itself, a
        GeneratorExit of the future would be raised in the task's outermost frame, where the coroutine cannot handle it.
        """
        if awaited is None:
            yield
            return True
        seconds = None if self.deadline is None else max(0.0, self.deadline - self.loop.time())
        return (yield from _end_of(awaited, seconds).__await__())

    def _leave(self, awaited: Awaited) -> None:
        self.on_leave(self.loop.create_task(_finish(self.steps, awaited)))


async def _end_of(future: asyncio.Future[Any], seconds: float | None) -> bool:
    """Wait for the end of the future, or for so many seconds, without cancelling it. Return whether it has ended."""
    loop = asyncio.get_running_loop()
    end = loop.create_future()

    def wake(_: object = None) -> None:
        if not end.done():
            end.set_result(None)

    timer = None if seconds is None else loop.call_later(seconds, wake)
    future.add_done_callback(wake)
    try:
        await end
    finally:
        if timer is not None:
            timer.cancel()
        future.remove_done_callback(wake)
    return future.done()


async def _finish(steps: Steps, awaited: Awaited) -> None:
    """Run a waiting coroutine to its end."""
    await _go_through(steps, awaited)


@coroutine
def _go_through(steps: Steps, awaited: Awaited) -> Generator[Any, Any, None]:
    while True:
        error = None
        try:
            yield awaited
        except BaseException as raised:  # noqa: BLE001  # it is raised within the coroutine
            error = raised
        try:
            awaited = steps.send(None) if error is None else steps.throw(error)
        except StopIteration:
            return
