"""Scenarios: each loads a deployment and reports measurements as lines of the table."""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.bench import comparisons, lists, load, seeds, streams
from tests.bench.load import COMPLETED, Calls, Line, LoadFailed
from tests.bench.shapes import UNBOUNDED, Deployment
from tests.bench.usage import Most, Usage, line

CONNECTIONS = 32
STREAMS = 100
MANY = 500
WAITING = 500
KNOWN_IDS = 200


Measure = Callable[[Deployment, float], Iterator[Line]]


class Scenario(NamedTuple):
    """A measurement: the calls it makes, and what it needs."""

    measure: Measure
    about: str
    wrk: bool = True
    settings: dict[str, str] = {}  # noqa: RUF012  # read only
    """Other settings than the usual."""
    fresh: bool = False
    """True to measure it once, not every round, in processes that are started anew."""
    postgres: bool = False
    """True to measure it in shapes with PostgreSQL only."""


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
    seen = streams.burst(deployment.base, deployment.key, "bench-stream", STREAMS)
    deployment.answers += seen.events.answers
    yield line(f"{STREAMS} streams: first chunk, due at 100 ms", seen.first, usage.so_far(), seen.events)
    yield line(f"{STREAMS} streams: last chunk, due at 1000 ms", seen.last, {})


def _many(label: str, *, sockets: bool) -> Measure:
    """Return a scenario of many streams, with the most memory until they have ended."""

    def measure(deployment: Deployment, seconds: float) -> Iterator[Line]:
        usage, most = Usage(deployment), Most(deployment)
        seen = streams.burst(deployment.base, deployment.key, "bench-stream", MANY, sockets=sockets, look=most.look)
        deployment.answers += seen.events.answers
        yield line(f"{label}: first event", seen.events, usage.so_far() | most.memory)
        yield line(f"{label}: first chunk, due at 100 ms", seen.first, {})
        yield line(f"{label}: last chunk, due at 1000 ms", seen.last, {})
        yield Line(f"{label}: memory before", most.before)

    return measure


def _waiting(deployment: Deployment, seconds: float) -> Iterator[Line]:
    """Begin all before the first ends; the memory they hold is the most seen until then."""
    calls = load.send("bench-waiting", wait=False, expected='"task"')
    at_once = 0
    seen = load.wrk(
        deployment.base, deployment.key, calls, connections=CONNECTIONS, seconds=load.PATIENCE, most=WAITING
    )
    deployment.answers += seen.answers
    most = Most(deployment)

    def look(states: dict[str, int]) -> None:
        nonlocal at_once
        at_once = max(at_once, states.get("working", 0))
        most.look()

    deployment.settled(look)
    short = "" if at_once >= WAITING else f"only {at_once} of {WAITING} runs waited at the same time"
    yield Line(
        f"{WAITING} waiting runs at the same time", most.memory, seen.errors + bool(short), seen.example or short
    )


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
    "immediate": Scenario(_immediate, "does not wait for the run", settings=UNBOUNDED, fresh=True),
    "streams": Scenario(_streams, f"{STREAMS} open together, 10 chunks, 100 ms apart", wrk=False),
    "sse": Scenario(
        _many(f"{MANY} streams of events", sockets=False),
        f"{MANY} such streams, and their memory",
        wrk=False,
        fresh=True,
    ),
    "sockets": Scenario(
        _many(f"{MANY} WebSockets", sockets=True),
        f"the same, a stream on each of {MANY} WebSockets",
        wrk=False,
        fresh=True,
    ),
    "guards": Scenario(
        comparisons.guards, "sends and gets with limits, budgets and audit, beside those without", fresh=True
    ),
    "languages": Scenario(
        comparisons.languages,
        "sends in VAPORA, ACP, zones and SPARC, each beside those in A2A 1.0",
        settings=comparisons.BEHIND_TLS | UNBOUNDED,
        fresh=True,
    ),
    "seeds": Scenario(
        seeds.numbers,
        "the numbers that SPARC and zones ask for, with their p95",
        settings=UNBOUNDED,
        fresh=True,
    ),
    "flood": Scenario(
        comparisons.floods,
        "gets beside a flood of wrong keys or tokens, and without it",
        settings=comparisons.PROXIED,
        fresh=True,
    ),
    "lists": Scenario(
        lists.measure, f"lists of an owner with {lists.ROWS:,} tasks, on PostgreSQL", fresh=True, postgres=True
    ),
    "waiting": Scenario(
        _waiting, f"memory of {WAITING} runs that wait", settings={"A2A_ASYNC_SLOTS": str(WAITING)}, fresh=True
    ),
}
