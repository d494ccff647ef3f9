"""Plays an agent of any form: async or not, generator or not. Each action that it yields goes to `accept`."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Protocol

from a2a.acting import GiveNow, act, act_now, arguments, locate
from a2a.actions import Action
from a2a.mistakes import WrongValue
from a2a.run import Run
from a2a.scribe import ends_run
from tasks_app.runner.isolation import actions_of
from tasks_app.runner.stopped import Stopped, exception_of

Accept = Callable[[Action], Awaitable[None]]
Leave = Callable[["Future[None]"], object]


class Threads(Protocol):
    """The source of threads for agents that are not async."""

    def submit(self, function: Callable[..., None], /, *arguments: Any) -> "Future[None]": ...


async def play(run: Run, accept: Accept, threads: Threads, leave: Leave | None = None) -> None:
    """Run the agent to its end, or to the action that ends it.

    Raises the exceptions of the agent. A BaseException becomes AgentCrashed, unless it is our own cancellation. A
    thread cannot be stopped: on cancellation the run is flagged, the thread stays behind, and `leave` gets its future.
    """
    try:
        try:
            await _play(run, accept, threads, leave)
        except Exception:
            await _take_cancellation()
            raise
        await _take_cancellation()
    except (Exception, Stopped):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise exception_of(error) from error


async def _take_cancellation() -> None:
    """Raise CancelledError if an agent has cancelled its task in its last step, so that no later wait is cancelled."""
    if (task := asyncio.current_task()) and task.cancelling():
        await asyncio.sleep(0)


async def _play(run: Run, accept: Accept, threads: Threads, leave: Leave | None) -> None:
    if run.agent.is_async:
        await act(run, accept)
    else:
        await _in_thread_of(threads, run, accept, leave)


async def _in_thread_of(threads: Threads, run: Run, accept: Accept, leave: Leave | None) -> None:
    """Wait for a thread in which the agent acts, or which watches the agent's process."""
    work = threads.submit(_in_thread, run, accept, asyncio.get_running_loop())
    thread = asyncio.wrap_future(work)
    try:
        await asyncio.shield(thread)
    except asyncio.CancelledError:
        run.cancelled = True
        if leave is not None:
            leave(work)
        thread.cancel()
        raise


async def _accept_in_time(run: Run, action: Action, accept: Accept) -> bool:
    """Accept an action of a thread unless the run ended in between. Return whether it was the last."""
    if run.cancelled:
        return True
    await accept(action)
    return ends_run(action)


def _in_thread(run: Run, accept: Accept, loop: asyncio.AbstractEventLoop) -> None:
    """Run a sync agent as a whole in one thread, so that its thread-locals and transactions hold."""

    def give(action: Action) -> bool:
        return asyncio.run_coroutine_threadsafe(_accept_in_time(run, action, accept), loop).result()

    try:
        if run.agent.isolation:
            _watch(run, give)
        else:
            act_now(run, give)
    except StopIteration as error:
        # As in a generator (PEP 479). asyncio gives no future a StopIteration, so the run would wait until its timeout.
        raise RuntimeError("the agent raised StopIteration") from error
    except (Exception, Stopped):
        raise
    except BaseException as error:
        raise exception_of(error) from error


def _watch(run: Run, give: GiveNow) -> None:
    """Pass on the actions of an agent's process.

    After the action that ends the run, the agent closes by itself: its `finally` blocks run to their end, as in a
    thread. Until then its costs and an error are still received.
    """
    arguments(run)  # Wrong arguments need no process.
    is_over = False
    with contextlib.closing(actions_of(run)) as actions:
        for action in actions:
            if run.cancelled:
                return
            try:
                is_over = is_over or give(action)
            except WrongValue as error:
                raise locate(run, error) from None
