"""Agents that do not end when they are told to, for faults."""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from a2a.agents import agent
from a2a.run import Run


@agent(timeout=1)
async def ignores_cancel(run: Run, times: int = 1000) -> AsyncIterator[Any]:
    """Goes on after so many cancellations, far beyond its timeout."""
    yield "begun"
    for _ in range(times):
        with contextlib.suppress(asyncio.CancelledError):  # that is the fault
            await asyncio.sleep(600)
    await asyncio.sleep(600)


@agent(timeout=30)
async def exits_apart(run: Run, how: str) -> AsyncIterator[Any]:
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
        await asyncio.sleep(3)
    else:
        work = loop.create_task(part())
        await asyncio.sleep(600)
        await work


def hurt_in_message(number: signal.Signals) -> None:
    """Send this process a signal as soon as its main thread is in the middle of a message."""

    def watch() -> None:
        main = threading.main_thread().ident
        while True:
            frame = sys._current_frames().get(main or 0)
            while frame is not None:
                if frame.f_code.co_name == "send" and frame.f_code.co_filename.endswith("/pipe.py"):
                    os.kill(os.getpid(), number)
                frame = frame.f_back
            time.sleep(0.0005)

    threading.Thread(target=watch, daemon=True).start()


@agent(isolation="process", timeout=60)
def stops_in_message(run: Run) -> Iterator[Any]:
    """Is stopped while it sends its result."""
    yield {"pid": os.getpid()}
    hurt_in_message(signal.SIGSTOP)
    yield "x" * 30_000_000


@agent(isolation="process", timeout=60)
def dies_in_message(run: Run) -> Iterator[Any]:
    """Is killed while it sends its result, and leaves a process behind that holds its pipe."""
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    yield {"pid": os.getpid()}
    hurt_in_message(signal.SIGKILL)
    yield "x" * 30_000_000


@agent(isolation="process")
def says_too_much(run: Run, size: int) -> str:
    """Gives a result of so many bytes."""
    return "x" * size


@agent(isolation="process")
def takes_its_time(run: Run) -> Iterator[Any]:
    """Works for three seconds, and starts a program that heeds SIGTERM."""
    yield {"pid": os.getpid()}
    with subprocess.Popen(["/bin/sleep", "60"]) as program:
        time.sleep(3)
        program.terminate()
    yield "done"


@agent(isolation="process", timeout=60)
def starts_processes(run: Run) -> Iterator[Any]:
    """Starts a program and a fork, and waits for both."""
    program = subprocess.Popen(["/bin/sleep", "600"])
    fork = os.fork()
    if not fork:
        time.sleep(600)
        os._exit(0)
    yield {"pid": os.getpid(), "pids": [os.getpid(), program.pid, fork]}
    program.wait()


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


@agent(isolation="process", timeout=2)
def ends_too_late(run: Run) -> Iterator[Any]:
    """Sleeps beyond its timeout."""
    yield {"pid": os.getpid()}
    time.sleep(60)


@agent
def stops_starts(run: Run) -> str:
    """Keeps its process from starting others, as a limit of processes or descriptors does."""
    multiprocessing.current_process().daemon = True
    return "done"
