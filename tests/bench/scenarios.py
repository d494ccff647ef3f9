"""Scenarios: each loads a deployment and reports measurements as lines of the table."""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.bench import load
from tests.bench.load import Calls, LoadFailed, Seen
from tests.bench.processes import busy
from tests.bench.shapes import Deployment

CONNECTIONS = 32
STREAMS = 100
WAITING = 500
KNOWN_IDS = 200
COMPLETED = "TASK_STATE_COMPLETED"


class Line(NamedTuple):
    """One measurement of one thing."""

    label: str
    values: dict[str, float]
    errors: int = 0
    example: str = ""


Measure = Callable[[Deployment, float], Iterator[Line]]


class Scenario(NamedTuple):
    """A measurement: the calls it makes, and what it needs."""

    measure: Measure
    about: str
    wrk: bool = True
    settings: dict[str, str] = {}  # noqa: RUF012  # read only
    """With others than the usual the processes are started anew, and it is measured once, not every round."""


def _calls(make: Callable[[Deployment], Calls], label: str, *, stores: bool, connections: int = CONNECTIONS) -> Measure:
    """Return a scenario of one call, again and again."""

    def measure(deployment: Deployment, seconds: float) -> Iterator[Line]:
        calls, usage = make(deployment), Usage(deployment)
        seen = load.wrk(deployment.base, deployment.key, calls, connections=connections, seconds=seconds)
        deployment.answers += seen.answers if stores else 0
        yield line(label, seen, usage.so_far())

    return measure


def _immediate(deployment: Deployment, seconds: float) -> Iterator[Line]:
    calls = load.send("bench-queued", wait=False, expected='"task"')
    since, usage = time.monotonic(), Usage(deployment)
    seen = load.wrk(deployment.base, deployment.key, calls, connections=CONNECTIONS, seconds=seconds)
    deployment.answers += seen.answers
    yield line("immediate send", seen, usage.so_far())
    deployment.settled()
    whole = {"per_second": seen.answers / (time.monotonic() - since)}
    yield Line("immediate send, until all completed", whole | usage.so_far())


def _streams(deployment: Deployment, seconds: float) -> Iterator[Line]:
    usage = Usage(deployment)
    first, last = load.streams(deployment.base, deployment.key, "bench-stream", STREAMS)
    deployment.answers += first.answers
    yield line(f"{STREAMS} streams: first chunk, due at 100 ms", first, usage.so_far())
    yield line(f"{STREAMS} streams: last chunk, due at 1000 ms", last, {})


def _waiting(deployment: Deployment, seconds: float) -> Iterator[Line]:
    """Begin all before the first ends; the memory they hold is the most seen until then."""
    calls = load.send("bench-waiting", wait=False, expected='"task"')
    usage, at_once = Usage(deployment), 0
    seen = load.wrk(
        deployment.base, deployment.key, calls, connections=CONNECTIONS, seconds=load.PATIENCE, most=WAITING
    )
    deployment.answers += seen.answers
    memory: dict[str, float] = {}

    def look(states: dict[str, int]) -> None:
        nonlocal at_once
        at_once = max(at_once, states.get("working", 0))
        for name, value in usage.memory().items():
            memory[name] = max(memory.get(name, 0.0), value)

    deployment.settled(look)
    short = "" if at_once >= WAITING else f"only {at_once} of {WAITING} runs waited at the same time"
    yield Line(f"{WAITING} waiting runs at the same time", memory, seen.errors + bool(short), seen.example or short)


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
        return used | self.memory() | {"machine_cpu": (busy() - self.busy) / seconds}

    def memory(self) -> dict[str, float]:
        return {f"{verb}_mib": process.memory() for verb, process in self.processes.items()}


def line(label: str, seen: Seen, usage: dict[str, float]) -> Line:
    return Line(label, seen.values | usage, seen.errors, seen.example)


def _quick(_: Deployment) -> Calls:
    return load.send("bench-quick", wait=True, expected=COMPLETED)


def _queued(_: Deployment) -> Calls:
    return load.send("bench-queued", wait=True, expected=COMPLETED)


def _get(deployment: Deployment) -> Calls:
    ids = deployment.ids(KNOWN_IDS)
    return Calls("/jsonrpc", '"result":{"id"', "GetTask", {"id": load.MARK}, ids)


def _list(deployment: Deployment) -> Calls:
    deployment.analyze()
    return Calls("/jsonrpc", '"result":{"tasks"', "ListTasks", {"pageSize": 20})


def _card(_: Deployment) -> Calls:
    return Calls("/.well-known/agent-card.json", '"skills"')


def warm_up(deployment: Deployment) -> None:
    """Pay the cost of first calls before the measurement, and make tasks to get."""
    seen = load.wrk(deployment.base, deployment.key, _quick(deployment), connections=8, seconds=5, most=KNOWN_IDS)
    if seen.errors:
        raise LoadFailed(f"the first calls were not answered: {seen.example}")
    deployment.answers += seen.answers


UNBOUNDED = dict.fromkeys(("A2A_OWNER_TASKS", "A2A_AGENT_TASKS", "A2A_TASKS"), "1000000")
"""One caller queues all that the server takes."""

SCENARIOS = {
    "send": Scenario(_calls(_quick, "send, quick agent", stores=True), "waits for an agent inside the call"),
    "get": Scenario(_calls(_get, "get", stores=False), "tasks that have ended"),
    "list": Scenario(_calls(_list, "list, a page of 20", stores=False), "the newest tasks"),
    "list-alone": Scenario(
        _calls(_list, "list, a page of 20, alone", stores=False, connections=1), "the same from one connection"
    ),
    "card": Scenario(_calls(_card, "card", stores=False), "the agent card"),
    "queued": Scenario(_calls(_queued, "queued send, waiting", stores=True), "waits for a run"),
    "alone": Scenario(
        _calls(_queued, "queued send, waiting, alone", stores=True, connections=1), "the same from one connection"
    ),
    "immediate": Scenario(_immediate, "does not wait for the run", settings=UNBOUNDED),
    "streams": Scenario(_streams, f"{STREAMS} open together, 10 chunks, 100 ms apart", wrk=False),
    "waiting": Scenario(_waiting, f"memory of {WAITING} runs that wait", settings={"A2A_ASYNC_SLOTS": str(WAITING)}),
}
