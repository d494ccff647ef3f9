"""Agents for faults; a server under test loads them through A2A_AGENT_MODULES."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from celery import signals as celery_signals

from a2a.agents import agent
from a2a.run import Run
from a2a.types import Part
from tasks_app.hints import dispatch
from tasks_app.limits import banks

# A test of shared limits says how long Redis may take, because each process decides alone when it is late.
banks.PATIENCE = float(os.environ.get("REDIS_SECONDS", banks.PATIENCE))
# A test of calls beside a broker that hangs says how long the process waits for it, in its own thread.
dispatch.PATIENCE = float(os.environ.get("BROKER_SECONDS", dispatch.PATIENCE))


@celery_signals.celeryd_after_setup.connect
def linger(**_: Any) -> None:
    """Keep a worker for a while, if a test says so, at the moment before Celery handles process signals."""
    time.sleep(float(os.environ.get("LINGER_SECONDS", "0")))


async def gate(until: str, seconds: float) -> None:
    """Wait until that file exists, which the test makes when it is ready; or for so long."""
    if not until:
        await asyncio.sleep(seconds)
        return
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and not Path(until).exists():  # noqa: ASYNC110, ASYNC240  # another process makes it
        await asyncio.sleep(0.02)


def pipe(until: str) -> None:
    """Block this thread, in one call, until the test opens that named pipe for writing."""
    os.close(os.open(until, os.O_RDONLY))


@agent
async def once(run: Run, seconds: float = 60.0, until: str = "") -> AsyncIterator[Any]:
    """Begins, then takes its time; tried once only."""
    yield "begun "
    await gate(until, seconds)
    yield "and ended"


@agent(attempts=3)
async def halts(run: Run, words: int = 40, until: str = "") -> AsyncIterator[Any]:
    """Counts aloud; its first attempt stands still in the middle, until that file exists or its process is killed."""
    for number in range(words):
        if number == words // 2 and run.attempt == 1:
            await gate(until, 300)
        yield run.artifact(f"{number} ", id=f"words-{number}")  # an event each


@agent
async def counted(run: Run, file: str, seconds: float = 60.0) -> AsyncIterator[Any]:
    """Writes down that it was called and as which attempt; tried once only."""
    note(file, run)
    yield f"attempt {run.attempt} "
    await asyncio.sleep(seconds)
    yield "and ended"


@agent(attempts=3)
async def counted_thrice(run: Run, file: str, seconds: float = 60.0) -> AsyncIterator[Any]:
    """Writes down the same, sleeps in its first attempt, and ends in its second."""
    note(file, run)
    yield f"attempt {run.attempt} "
    if run.attempt == 1:
        await asyncio.sleep(seconds)
    yield "and ended"


@agent(timeout=120)
async def talks(run: Run, words: int = 100, pause: float = 0.1, until: str = "") -> AsyncIterator[Any]:
    """Counts aloud, at most until that file exists; tried once only."""
    for number in range(words):
        if until and Path(until).exists():  # noqa: ASYNC240
            break
        yield f"{number} "
        await asyncio.sleep(pause)


@agent(queue="cpu", attempts=3, backoff=0.2)
def poison(run: Run, file: str) -> str:
    """Kills its process."""
    note(file, run)
    os.kill(os.getpid(), signal.SIGKILL)
    return "not reached"


@agent(attempts=2, backoff=8)
async def pauses(run: Run, file: str) -> str:
    """Meets an error that passes, in its first attempt, and has a long pause before its second."""
    note(file, run)
    if run.attempt == 1:
        raise ConnectionError("try again")
    return "done"


@agent(attempts=3, backoff=1)
async def falters(run: Run, file: str) -> str:
    """Meets an error that passes, in its first two attempts."""
    note(file, run)
    if run.attempt < 3:
        raise ConnectionError("try again")
    return "done"


def note(file: str, run: Run) -> None:
    """One line for each call of an agent: its task, its attempt, and when it was."""
    with Path(file).open("a", encoding="ascii") as lines:
        lines.write(f"{run.task_id} {run.attempt} {time.monotonic()}\n")


@agent
async def sleeper(run: Run, seconds: float = 60.0, until: str = "") -> str:
    """Sleeps, and says nothing before it wakes."""
    await gate(until, seconds)
    return "awake"


@agent
async def opens(run: Run, until: str) -> str:
    """Keeps a file open until another one exists."""
    with Path(os.devnull).open(encoding="ascii"):  # noqa: ASYNC230  # it is there at once
        await gate(until, 300)
    return "closed"


@agent
async def chatty(run: Run, chunks: int = 1000, size: int = 16_384, pause: float = 0.0) -> AsyncIterator[Any]:
    """Talks a lot."""
    for place in range(chunks):
        yield run.artifact(f"{place:08} ".ljust(size, "x"), id="talk")
        if pause:
            await asyncio.sleep(pause)


@agent
def stubborn(run: Run, seconds: float = 60.0) -> str:
    """Blocks its thread, and cannot be interrupted."""
    time.sleep(seconds)
    return "done"


@agent(queue="cpu", attempts=2)
def burns(run: Run, seconds: float = 1.0) -> dict[str, int]:
    """Keeps a core busy, and says which process it was."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return {"pid": os.getpid()}


@agent(priority=5)
async def urgent(run: Run) -> str:
    """Goes before the others of its queue."""
    return "done"


@agent(input_modes=["*/*"], output_modes=["*/*"])
async def maker(run: Run, size: int = 0, pause: float = 0.0, until: str = "") -> AsyncIterator[Any]:
    """Makes a file, or tells how large those are that it is given."""
    for part in run.files:
        yield f"{len(await run.read(part))} "
    if until:
        await gate(until, 300)
    if size:
        yield run.artifact(Part(raw=os.urandom(size), filename="made.bin"), id="made")
        await asyncio.sleep(pause)


@agent
async def remembers(run: Run, until: str) -> str:
    """Stores a value when that file exists, and gives it back."""
    await gate(until, 300)
    await run.memory.store("key", "remembered")
    return str((await run.memory.retrieve("key")).data)


@agent(timeout=1)
def hung(run: Run, until: str = "") -> str:
    """Blocks its thread far beyond its timeout, or until that pipe is opened."""
    if until:
        pipe(until)
    else:
        time.sleep(600)
    return "at last"


@agent(timeout=1, queue="cpu")
def hung_apart(run: Run, seconds: float = 600.0) -> str:
    """Blocks the process that was forked for it."""
    time.sleep(seconds)
    return "at last"


@agent
def brief(run: Run, seconds: float = 0.02) -> dict[str, int]:
    """Takes a thread for a moment, and says of which process."""
    time.sleep(seconds)
    return {"pid": os.getpid()}


@agent(timeout=60)
async def blocker(run: Run, seconds: float = 45.0, until: str = "") -> str:
    """Blocks its event loop, as a call that is not async does: for so long, or until that pipe is opened."""
    if until:
        pipe(until)
    else:
        time.sleep(seconds)  # noqa: ASYNC251  # that is the fault
    return "at last"


@agent(quick=True)
async def blocks_the_doors(run: Run, seconds: float) -> str:
    """Blocks the loop of all callers, inside the call."""
    time.sleep(seconds)  # noqa: ASYNC251  # that is the fault
    return "at last"


@agent(timeout=2)
async def blocks_too_long(run: Run, until: str = "") -> AsyncIterator[Any]:
    """Blocks its event loop beyond its timeout, if a pipe is given until whose opening it does so."""
    yield "begun"
    await asyncio.sleep(0.1)
    if until:
        pipe(until)
    yield " and ended"


@agent
async def reporter(run: Run, updates: int = 300, size: int = 300, pause: float = 0.0) -> AsyncIterator[Any]:
    """Reports its progress again and again."""
    for place in range(updates):
        yield run.status(f"{place} ".ljust(size, "x"))
        if pause:
            await asyncio.sleep(pause)


async def opened() -> None:
    """Wait until the test lets its agents end."""
    await gate(str(Path(os.environ["NOTES"]) / "open"), 300)


@agent
async def deaf(run: Run) -> str:
    """Never looks into its inbox: it works until it may end, and says what was said before it began."""
    note(str(Path(os.environ["NOTES"]) / "calls"), run)
    await opened()
    return " ".join(message.text for message in run.history if message.role == "user" and message.text)


@agent
async def records(run: Run) -> AsyncIterator[Any]:
    """Writes down what it was given: before it began, and in its inbox shortly after it may end."""
    file = Path(os.environ["NOTES"]) / f"{run.task_id}-{time.monotonic_ns()}"
    given = [message.text for message in run.history if message.text]
    yield run.status("at it")
    await opened()
    await asyncio.sleep(0.3)
    given += [message.text for message in run.inbox]
    file.write_text("\n".join(given), encoding="utf-8")


@agent(timeout=120)
async def counts(run: Run, words: int) -> AsyncIterator[Any]:
    """Counts as fast as it can, an event a number: by turns in its artifact and in its status."""
    for number in range(words):
        yield run.status(str(number)) if number % 2 else f"{number} "


@agent
def says_who(run: Run) -> dict[str, Any]:
    """Says who calls, and which process it is."""
    return {"pid": os.getpid(), "scopes": sorted(run.caller.scopes), "tenant": run.caller.tenant}


@agent(attempts=20, backoff=0)
async def persists(run: Run, kills: int = 5) -> AsyncIterator[Any]:
    """Count aloud until the process is killed, and end in the attempt after so many kills."""
    number = 0
    while run.attempt <= kills:
        yield f"{run.attempt}.{number} "
        number += 1
        await asyncio.sleep(0.05)
    yield "and ended"


@agent(attempts=50, backoff=0, timeout=300)
async def numbers(run: Run, words: int = 30, pause: float = 0.05) -> AsyncIterator[Any]:
    """Count aloud, report every tenth number, and begin anew after a kill."""
    for number in range(words):
        yield run.artifact(f"{number} ", id="numbers")
        if number % 10 == 9:
            yield run.status(f"{number}")
        await asyncio.sleep(pause)


@agent(cost=("0.50", "1"), attempts=2)
async def pays(run: Run, seconds: float = 60.0) -> AsyncIterator[Any]:
    """Reports a cost, sleeps in its first attempt without an event, and reports another cost in its second."""
    run.spend("0.25")
    if run.attempt == 1:
        await asyncio.sleep(seconds)
    yield f"{run.spent} spent"


@agent(cost=("0.50", "1"), quick=True)
async def pays_at_once(run: Run) -> str:
    """Reports the maximum cost within the call."""
    run.spend("1")
    return "paid"
