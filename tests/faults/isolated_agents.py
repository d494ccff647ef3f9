"""Agents in processes of their own, and faults of such agents. A server that loads them starts a process that loads
everything again, so only their own tests do."""

import asyncio
import ctypes
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
from a2a.failures import Failure, Retry
from a2a.run import Run
from tests.faults.agents import pipe


@agent(isolation="process", name="apart-async-generator")
async def apart_async_generator(run: Run) -> AsyncIterator[Any]:
    """Says what it is given, as an async generator, when it has heard a message."""
    yield run.status("at it")
    while not run.inbox:  # noqa: ASYNC110  # an inbox is a list
        await asyncio.sleep(0.01)
    yield {"pid": os.getpid(), "heard": run.inbox[0].text, "metadata": run.metadata}


@agent(isolation="process")
async def apart_coroutine(run: Run, number: int) -> dict[str, int]:
    """Says what it is given, as a coroutine."""
    await asyncio.sleep(0)
    return {"pid": os.getpid(), "number": number}


@agent(isolation="process", input_modes=["*/*"])
def apart_generator(run: Run) -> Iterator[Any]:
    """Asks once, then says what was said, as a generator."""
    if len(run.history) == 1:
        yield run.ask("Which one?")
        raise AssertionError("nothing is done after a question")
    yield {"pid": os.getpid(), "said": [message.text for message in run.history]}
    yield {"bytes": [len(run.read_now(part)) for part in run.files]}


@agent(isolation="process")
def apart_function(run: Run) -> dict[str, int]:
    """Says which process it is, as a function."""
    return {"pid": os.getpid()}


@agent(isolation="process")
def apart_stops_server(run: Run, code: int) -> None:
    """Stops the server that has forked its process, and ends with an exit code."""
    os.kill(os.getppid(), signal.SIGSTOP)
    os._exit(code)


@agent(isolation="process")
def apart_refuses(run: Run, how: str) -> str:
    """Fails in its own words or by a mistake."""
    if how == "words":
        raise Failure("Not today.")
    raise RuntimeError("the mistake")


@agent(isolation="process")
async def apart_errs(run: Run, what: str) -> AsyncIterator[Any]:
    """Makes a mistake of an author."""
    yield {"scopes": sorted(run.caller.scopes), "tenant": run.caller.tenant}
    run.status("forgotten")
    if what == "yield":
        yield object()
    if what == "keys":
        yield {1: "one"}
    if what == "ask":
        yield run.ask("What now?")


@agent(isolation="process", timeout=60)
def spins(run: Run, stubborn: bool = False) -> Iterator[Any]:
    """Computes for ever; a stubborn one does not even heed the order to stop."""
    if stubborn:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    yield {"pid": os.getpid()}
    try:
        while True:
            pass
    finally:
        sys.stderr.write("tidied up\n")


@agent(isolation="process", timeout=60)
def tidies_up(run: Run, how: str) -> Iterator[Any]:
    """Ends its run by an action, and takes longer than the grace to tidy up."""
    try:
        yield {"ask": run.ask("Which one?"), "reject": run.reject("No.")}[how]
    finally:
        time.sleep(2.0)
        sys.stderr.write(f"tidied up after {how}\n")
        if how == "reject":
            raise RuntimeError("untidy")


@agent(isolation="process", timeout=60)
async def spins_async(run: Run) -> AsyncIterator[Any]:
    """Computes for ever on its event loop."""
    yield {"pid": os.getpid()}
    await asyncio.sleep(0)
    while True:
        pass


@agent(isolation="process", timeout=4)
def spins_too_long(run: Run) -> Iterator[Any]:
    """Computes beyond its timeout."""
    yield {"pid": os.getpid()}
    while True:
        pass


@agent(isolation="process")
def apart_and_deaf(run: Run, until: str = "") -> Iterator[Any]:
    """Works until that pipe is opened, if one is given, without a look into its inbox."""
    yield {"pid": os.getpid()}
    if until and len(run.history) == 1:
        pipe(until)
    yield run.text


@agent(isolation="process")
def crashes(run: Run, how: str) -> str:
    """Ends its process."""
    sys.stderr.write(f"last words before {how}\n")
    match how:
        case "segfault":
            ctypes.string_at(0)
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
    return "unreachable"


@agent(isolation="process", attempts=2)
def crashes_once(run: Run) -> str:
    """Ends its process at its first attempt."""
    if run.attempt == 1:
        os._exit(4)
    return "survived"


@agent(isolation="process", attempts=3, backoff=0.1)
def apart_is_busy(run: Run) -> str:
    """Raises what is worth another attempt, twice."""
    if run.attempt == 1:
        raise ConnectionError("for now")
    if run.attempt == 2:
        raise Retry("Busy.", after=0)
    return "done"


@agent(isolation="process", memory=100_000_000)
def greedy(run: Run, megabytes: int) -> str:
    """Takes memory."""
    taken = [bytearray(1_000_000) for _ in range(megabytes)]
    return f"took {len(taken)} MB"


@agent(cost=("0.50", "1"), isolation="process")
def pays_apart(run: Run) -> Iterator[Any]:
    """Reports three costs in a process of its own, the last one from a thread, with and without an event between."""
    run.spend("0.25")
    yield f"{run.budget_left} left"
    run.spend("0.125")
    thread = threading.Thread(target=run.spend, args=("0.0625",))
    thread.start()
    thread.join()
    yield f"{run.spent} spent"
    run.spend("0.25")
    yield "and more"


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
def takes_its_time(run: Run, until: str) -> Iterator[Any]:
    """Works until that pipe is opened, and starts a program that heeds SIGTERM."""
    yield {"pid": os.getpid()}
    with subprocess.Popen(["/bin/sleep", "600"]) as program:
        pipe(until)
        program.terminate()
    yield "done"


@agent(isolation="process", timeout=60)
def starts_processes(run: Run) -> Iterator[Any]:
    """Starts a program, another with a process group of its own and a fork, and waits for the first."""
    program = subprocess.Popen(["/bin/sleep", "600"])
    apart = subprocess.Popen(["/bin/sleep", "600"], process_group=0)
    fork = os.fork()
    if not fork:
        time.sleep(600)
        os._exit(0)
    yield {"pid": os.getpid(), "pids": [os.getpid(), program.pid, apart.pid, fork]}
    program.wait()


@agent(isolation="process", timeout=60)
def forks(run: Run, how: str) -> Iterator[Any]:
    """Has a fork that does not leave the code of the agent."""
    reader, writer = os.pipe()
    if fork := os.fork():
        os.close(writer)
        os.read(reader, 1)  # until the fork has ended
        yield {"status": os.waitpid(fork, 0)[1]}
    else:
        match how:
            case "raises":
                raise RuntimeError("only in the fork")
            case "yields":
                yield "from the fork"
            case "spends":
                run.spend("0.25")


@agent(isolation="process", timeout=60)
def closes_all(run: Run, how: str) -> Iterator[Any]:
    """Closes all descriptors of its process."""
    yield {"pid": os.getpid()}
    os.closerange(0, 1000)
    if how == "waits":
        time.sleep(2)  # Some kernels wake the thread that listens at the pipe.
    yield "more"


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
