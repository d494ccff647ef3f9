"""Let a function of any form act: async or not, generator or not. What it yields goes to `accept`, one by one."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Protocol

import msgspec

from a2a.errors import InvalidParams
from a2a.run import Run, action_of
from a2a.scribe import ends_run
from tasks_app.runner.isolation import actions_of
from tasks_app.runner.stopped import AgentCrashed, Stopped

Accept = Callable[[Any], Awaitable[None]]
Leave = Callable[["Future[None]"], object]


class Threads(Protocol):
    """Where the thread of an agent that is not async comes from."""

    def submit(self, function: Callable[..., None], /, *arguments: Any) -> "Future[None]": ...


async def play(run: Run, accept: Accept, threads: Threads, leave: Leave | None = None) -> None:
    """Runs the agent to its end, or to the action that ends it. Raises what the agent raises, but as AgentCrashed what
    is no Exception, unless it was we who stopped it. A thread cannot be stopped: it is told, nobody waits for it, and
    `leave` learns of it."""
    try:
        await _play(run, accept, threads, leave)
    except (Exception, Stopped):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise AgentCrashed(repr(error)) from error


async def _play(run: Run, accept: Accept, threads: Threads, leave: Leave | None) -> None:
    function, form = run.agent.function, run.agent.form
    inputs = arguments(run)
    if run.agent.isolation:
        await _in_thread_of(threads, run, inputs, accept, leave)
    elif form == "async generator":
        async with contextlib.aclosing(function(run, **inputs)) as values:
            async for value in values:
                if await _accepted(value, accept):
                    return
    elif form == "coroutine":
        if (value := await function(run, **inputs)) is not None:
            await _accepted(value, accept)
    else:
        await _in_thread_of(threads, run, inputs, accept, leave)


async def _in_thread_of(
    threads: Threads, run: Run, inputs: dict[str, Any], accept: Accept, leave: Leave | None
) -> None:
    """Wait for a thread in which the agent acts, or which watches the agent's process."""
    work = threads.submit(_in_thread, run, inputs, accept, asyncio.get_running_loop())
    thread = asyncio.wrap_future(work)
    try:
        await asyncio.shield(thread)
    except asyncio.CancelledError:
        run.cancelled = True
        if leave is not None:
            leave(work)
        thread.cancel()
        raise


async def _accepted(value: Any, accept: Accept) -> bool:
    """Hands the action over; whether it was the last."""
    action = action_of(value)
    await accept(action)
    return ends_run(action)


async def _accepted_in_time(run: Run, value: Any, accept: Accept) -> bool:
    """Hands the action of a thread over, unless the run ended while it was on its way."""
    return run.cancelled or await _accepted(value, accept)


def _in_thread(run: Run, inputs: dict[str, Any], accept: Accept, loop: asyncio.AbstractEventLoop) -> None:
    """The whole of a sync agent, in one thread, so that its thread-locals and transactions hold."""
    try:
        _act(run, inputs, accept, loop)
    except (Exception, Stopped):
        raise
    except BaseException as error:
        raise AgentCrashed(repr(error)) from error


def _act(run: Run, inputs: dict[str, Any], accept: Accept, loop: asyncio.AbstractEventLoop) -> None:
    def give(value: Any) -> bool:
        if run.cancelled:
            return True
        return asyncio.run_coroutine_threadsafe(_accepted_in_time(run, value, accept), loop).result()

    if run.agent.form == "function" and not run.agent.isolation:
        if (value := run.agent.function(run, **inputs)) is not None:
            give(value)
        return
    actions = actions_of(run) if run.agent.isolation else run.agent.function(run, **inputs)
    with contextlib.closing(actions) as values:
        for value in values:
            if give(value):
                return


def arguments(run: Run) -> dict[str, Any]:
    """The inputs of the agent from the message's first data part. Raises InvalidParams naming what does not fit."""
    shape = run.agent.inputs
    if shape is None:
        return {}
    place = next((n for n, part in enumerate(run.message.parts) if part.data is not msgspec.UNSET), None)
    field = f"message.parts[{place or 0}].data"
    try:
        values = msgspec.convert({} if place is None else run.message.parts[place].data, shape)
    except msgspec.ValidationError as error:
        raise InvalidParams((field, str(error).replace("`", ""))) from None
    return {name: getattr(values, name) for name in shape.__struct_fields__}
