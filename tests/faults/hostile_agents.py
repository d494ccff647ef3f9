"""Agents that do not end when they are told to, for faults."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

from a2a.agents import agent
from a2a.run import Run
from tests.faults.agents import gate


@agent(timeout=1)
async def ignores_cancel(run: Run, times: int = 1000) -> AsyncIterator[Any]:
    """Goes on after so many cancellations, far beyond its timeout."""
    yield "begun"
    await _ignore(times)


@agent(timeout=300)
async def ignores_cancel_too(run: Run) -> AsyncIterator[Any]:
    """Goes on likewise, and has time enough to be canceled by its caller."""
    yield "begun"
    await _ignore(1000)


async def _ignore(times: int) -> None:
    for _ in range(times):
        with contextlib.suppress(asyncio.CancelledError):  # that is the fault
            await asyncio.sleep(600)
    await asyncio.sleep(600)


@agent(timeout=300)
async def exits_apart(run: Run, how: str, until: str = "") -> AsyncIterator[Any]:
    """Ends its event loop from an asyncio task of its own, as a library does that was made for programs."""
    yield "begun"
    loop = asyncio.get_running_loop()

    async def part() -> None:
        await asyncio.sleep(0.1)
        match how:
            case "exit":
                sys.exit(2)
            case "interrupt":
                raise KeyboardInterrupt
            case "stop":
                loop.stop()
            case "break":
                loop._selector.close()  # type: ignore[attr-defined]  # that is the fault

    if how == "wait":
        await gate(until, 300)
    else:
        work = loop.create_task(part())
        await asyncio.sleep(600)
        await work


@agent(quick=True)
async def ignores_its_end(run: Run) -> None:
    """Goes on inside the call for ever, whatever cancels it."""
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1)


@agent(quick=True)
async def exits_in_a_subtask(run: Run) -> None:
    """Exits in an asyncio task of its own, inside the call, as a library that parses arguments does."""

    async def parse() -> None:
        sys.exit(2)

    await asyncio.gather(parse())


@agent(quick=True)
async def cancels_everything(run: Run) -> None:
    """Cancels all tasks of the loop of all callers."""
    for task in asyncio.all_tasks():
        task.cancel()
