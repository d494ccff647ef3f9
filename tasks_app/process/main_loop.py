"""Runs the event loop of a process until its main coroutine ends, whatever the code of agents does to the loop."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tasks_app.runner.fork_server import leave

log = logging.getLogger(__name__)
R = TypeVar("R")
END_SECONDS = 1.0
"""Seconds that asyncio tasks have to end with their loop. One that ignores its cancellation would hold up the end."""


def run_to_end(factory: Callable[[], asyncio.AbstractEventLoop] | None, main: Coroutine[Any, Any, R]) -> R:
    """Run the coroutine on a new loop, by default one of asyncio, and return its result. Raises its exceptions."""
    loop = (factory or asyncio.new_event_loop)()
    try:
        return _run(loop, main, warns=True)
    finally:
        # If the main coroutine raised SystemExit, its call of stop() is still due. It is no fault of an agent.
        _run(loop, _end_tasks(loop), warns=False)
        loop.close()


def obey_signals(stop: Callable[[str], None]) -> list[str]:
    """Call a function with the name of the first SIGINT or SIGTERM, on the running loop. A second one ends the process.

    Return the list of the signals, which grows as they come.
    """
    loop, orders = asyncio.get_running_loop(), list[str]()

    def hear(name: str) -> None:
        orders.append(name)
        if len(orders) > 1:
            log.warning("%s again: leaving at once", name)
            leave(1)
        stop(name)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, hear, signal.Signals(number).name)
    return orders


def _run(loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, R], *, warns: bool) -> R:
    """Run the loop until the coroutine ends.

    Quick agents share this loop with all callers. If a task raises SystemExit or KeyboardInterrupt, asyncio ends the
    task with it, and run_forever() raises it, too. It also ends if a callback raises one of them, and by `loop.stop()`.
    No callback that is due is lost then, so the loop is run again.
    """
    task = loop.create_task(main)
    task.add_done_callback(lambda _: loop.stop())
    while not task.done():
        cause: BaseException | None = None
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            cause = error
        if warns and not task.done():
            what = repr(cause) if cause else "a call of its stop()"
            log.error(
                "%s in an asyncio task or a callback stopped the event loop of all callers, which goes on",
                what,
                exc_info=cause,
            )
    return task.result()


async def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel all other tasks, close all async generators, and wait for them, but not for ever."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.wait({*tasks, loop.create_task(loop.shutdown_asyncgens())}, timeout=END_SECONDS)
