"""Processes that are measured: on which cores they run, what they take, and their end, by process id."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.faults import nodes

START_SECONDS = 30.0
STOP_SECONDS = 10.0


class BenchError(Exception):
    """A process did not start or did not end. The message names it and has its log."""


def cores() -> frozenset[int]:
    """Return the cores that this process may use; none where the system cannot pin."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else frozenset()


@contextmanager
def on(wanted: frozenset[int]) -> Iterator[None]:
    """Run what is started inside on these cores."""
    before = cores()
    if wanted:
        os.sched_setaffinity(0, wanted)
    try:
        yield
    finally:
        if wanted:
            os.sched_setaffinity(0, before)


class Process:
    """A command of manage.py that runs until it is told to stop."""

    def __init__(self, verb: str, folder: Path, settings: dict[str, str]) -> None:
        self.verb = verb
        self.log = folder / f"{verb}.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                nodes.command(verb),
                env=nodes.environment(folder, **settings),
                cwd=nodes.ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the measuring process, which stops this one
            )

    def until(self, true: Callable[[], bool], what: str) -> None:
        """Wait until the condition is true. Raises BenchError when the process ends or the time is over."""
        deadline = time.monotonic() + START_SECONDS
        while not true():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise BenchError(f"manage.py {self.verb}: {what} did not come about:\n{self.tail()}")
            time.sleep(0.05)

    def tail(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def stop(self) -> None:
        """Stop the process with a signal, and kill it after a while."""
        try:
            self.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
        finally:
            self.process.kill()  # does nothing to one that has ended
            self.process.wait()

    def memory(self) -> float:
        """Return MiB in memory, with all processes that it started; 0 where the system does not tell."""
        found = (re.search(r"VmRSS:\s+(\d+) kB", _proc(f"{pid}/status")) for pid in _tree(self.process.pid))
        return sum(int(line[1]) for line in found if line) / 1024

    def cpu(self) -> float:
        """Return seconds of processor time so far, with all processes that it started."""
        rows = [_proc(f"{pid}/stat").rpartition(")")[2].split() for pid in _tree(self.process.pid)]
        return sum(int(row[11]) + int(row[12]) for row in rows if row) / os.sysconf("SC_CLK_TCK")


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in path.read_text(encoding="ascii").split():
                yield from _tree(int(child))


def _proc(name: str) -> str:
    """Return a file of /proc; empty if there is none, or none any more."""
    try:
        return Path(f"/proc/{name}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def busy() -> float:
    """Seconds that the cores of the machine have worked so far, for all processes; 0 where the system does not tell."""
    row = _proc("stat").partition("\n")[0].split()
    # user nice system idle iowait irq softirq steal
    return sum(int(row[place]) for place in (1, 2, 3, 6, 7, 8)) / os.sysconf("SC_CLK_TCK") if row else 0.0
