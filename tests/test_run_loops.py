"""The event loops of async agents."""

import asyncio
import weakref
from contextvars import ContextVar

from tasks_app.runner.loops import LastingLoop


class Value:
    """A value that a context keeps."""


def test_a_timer_that_was_cancelled_keeps_nothing_of_its_run() -> None:
    loop = LastingLoop()
    variable: ContextVar[Value] = ContextVar("variable")

    async def work() -> "weakref.ref[Value]":
        variable.set(value := Value())
        async with asyncio.timeout(600):
            await asyncio.sleep(0)
        return weakref.ref(value)

    try:
        loop.call_later(60, print)  # A timer of another run, whose time is earlier.
        loop.is_ending = True  # so that it stops at the end of the work
        found = loop.run_until_complete(work())
        assert found() is None
    finally:
        loop.close()
