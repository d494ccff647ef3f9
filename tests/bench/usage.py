"""Processor time and memory of the processes of a deployment while it is measured."""

import time
from collections.abc import Mapping

from tests.bench.load import Line, Seen
from tests.bench.processes import Process, busy
from tests.bench.shapes import Deployment


class Usage:
    """Processor time and memory of the processes during a measurement."""

    def __init__(self, deployment: Deployment) -> None:
        self.processes = deployment.processes
        self.since, self.busy = time.monotonic(), busy()
        self.before = {verb: process.cpu() for verb, process in self.processes.items()}

    def so_far(self) -> dict[str, float]:
        """Return cores that were busy for each process and for the whole machine, and the memory of each process."""
        seconds = time.monotonic() - self.since
        used = {
            f"{verb}_cpu": (process.cpu() - self.before[verb]) / seconds for verb, process in self.processes.items()
        }
        return used | memory(self.processes) | {"machine_cpu": (busy() - self.busy) / seconds}


class Most:
    """The most memory of the processes that was seen."""

    def __init__(self, deployment: Deployment) -> None:
        self.processes = deployment.processes
        self.before = memory(self.processes)
        self.memory = dict(self.before)

    def look(self) -> None:
        for name, value in memory(self.processes).items():
            self.memory[name] = max(self.memory[name], value)


def memory(processes: Mapping[str, Process]) -> dict[str, float]:
    """Return the memory of each process."""
    return {f"{verb}_mib": process.memory() for verb, process in processes.items()}


def line(label: str, seen: Seen, usage: dict[str, float], counted: Seen | None = None) -> Line:
    """Return a measurement. The errors are those of `counted`, if another result of the same load has them."""
    counted = counted or seen
    return Line(label, seen.values | usage, counted.errors, counted.example)
