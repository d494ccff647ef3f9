"""The numbers that the systems ask for, each with its bound in its label. SPARC asks for most of them. Zones ask for a
bound of the time that the verification zone adds to a call."""

import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.bench import load, streams
from tests.bench.comparisons import in_turns
from tests.bench.load import MARK, Calls, Line, LoadFailed, Seen
from tests.bench.shapes import UNBOUNDED, Deployment
from tests.bench.usage import Most, Usage, line

PATH = "/agents/{}/sparc"
OLD = {"A2A-Version": "0.2"}
STREAMS = 100
NORMAL = 50
"""Messages a second in normal load: what SPARC asks of one agent."""
RATES = {
    "status (< 100 ms)": 700,
    "quick send (< 500 ms)": 200,
    "task send (< 200 ms)": 100,
    "card (< 100 ms)": 20,
}
"""Calls a second, all at once. Those of JSON-RPC are 1,000 a second together."""
CARD = "card (< 100 ms)"
CONNECTIONS = 16
ITEMS = 20
"""Items of a batch."""
IDS = 200


def numbers(deployment: Deployment, seconds: float) -> Iterator[Line]:
    """Measure each number of SPARC in turn, and those of zones in a process of their own. The memory is the most of the
    whole time."""
    most = Most(deployment)
    for measure in (_normal, _together, _streams, _one_agent, _batch):
        yield from measure(deployment, seconds)
        most.look()
        deployment.settled(lambda _: most.look())
    yield Line("memory of an instance (< 512 MB)", most.memory)
    yield from _zones(deployment, seconds)


def _calls(deployment: Deployment) -> dict[str, Calls]:
    """Return the calls of SPARC by their labels."""
    message = {"message": load.OLD_MESSAGE}
    ids = deployment.ids(IDS)
    return {
        "status (< 100 ms)": Calls("/sparc", '"completed"', "tasks/get", {"taskId": MARK}, ids, OLD),
        "quick send (< 500 ms)": load.SENDS["SPARC"],
        "task send (< 200 ms)": Calls(PATH.format("bench-queued"), '"task"', "tasks/submit", message, headers=OLD),
        CARD: Calls("/.well-known/agent.json", '"skills"', headers=OLD),
    }


def _normal(deployment: Deployment, seconds: float) -> Iterator[Line]:
    """Send messages at an even rate, and see how much of a core the server takes."""
    usage = Usage(deployment)
    seen = _load(deployment, load.SENDS["SPARC"], seconds, rate=NORMAL)
    deployment.answers += seen.answers
    yield line(f"normal load: {NORMAL} messages a second (< 0.5 cores)", seen, usage.so_far())


def _together(deployment: Deployment, seconds: float) -> Iterator[Line]:
    """Make all calls at once, each kind at its even rate."""
    calls, usage = _calls(deployment), Usage(deployment)
    with ThreadPoolExecutor(len(calls)) as pool:
        pending = {
            label: pool.submit(_load, deployment, one, seconds, rate=RATES[label]) for label, one in calls.items()
        }
        results = {label: future.result() for label, future in pending.items()}
    used = usage.so_far()
    deployment.answers += sum(seen.answers for label, seen in results.items() if "send" in label)
    whole = sum(seen.values["per_second"] for label, seen in results.items() if label != CARD)
    yield Line("calls of JSON-RPC (1,000 a second)", {"per_second": whole} | used)
    for label, seen in results.items():
        yield line(f"- {label}", seen, {})


def _streams(deployment: Deployment, seconds: float) -> Iterator[Line]:
    usage = Usage(deployment)
    seen = streams.burst(deployment.base, deployment.key, "bench-stream", STREAMS)
    deployment.answers += seen.events.answers
    yield line(f"set-up of {STREAMS} streams at the same moment (< 300 ms)", seen.events, usage.so_far())


def _one_agent(deployment: Deployment, seconds: float) -> Iterator[Line]:
    """Send messages to one agent that is queued, and wait for each answer."""
    usage = Usage(deployment)
    send = load.send("bench-queued", wait=True, expected=load.COMPLETED)
    seen = _load(deployment, send, seconds)
    deployment.answers += seen.answers
    yield line("messages of one agent, each with its answer (50 a second)", seen, usage.so_far())


def _batch(deployment: Deployment, seconds: float) -> Iterator[Line]:
    """Execute a batch of an agent that waits, and count the items that are at work at the same time."""
    message = {"kind": "message", "role": "user", "messageId": "any", "parts": [{"kind": "text", "text": "wait"}]}
    params = {
        "operation": "bench-waiting",
        "tasks": [{"message": message}] * ITEMS,
        "configuration": {"maxConcurrent": ITEMS, "batchSize": ITEMS},
    }
    answer = httpx.post(
        f"{deployment.base}/sparc",
        content=load.envelope("batchtools/execute", params),
        headers=load.headers(deployment.key) | OLD,
        timeout=load.PATIENCE,
        trust_env=False,
    )
    if "result" not in answer.json():
        raise LoadFailed(f"a batch was refused: {answer.text[:300]}")
    at_once, began = 0, time.monotonic()

    def look(states: dict[str, int]) -> None:
        nonlocal at_once
        at_once = max(at_once, states.get("working", 0) - 1)  # The batch is a task too.

    deployment.settled(look)
    deployment.answers += ITEMS + 1
    rate = ITEMS / (time.monotonic() - began)
    yield Line(f"batch of {ITEMS} items (10 at the same time)", {"per_second": rate, "at_once": float(at_once)})


def _zones(deployment: Deployment, seconds: float) -> Iterator[Line]:
    """Compare questions through both zones to direct calls of the agent, in turns."""
    deployment.stop()
    deployment.start(
        A2A_EXECUTION="in-process", A2A_EXECUTION_KEY=deployment.key, A2A_EXECUTION_AGENT="bench-queued", **UNBOUNDED
    )
    direct = load.SENDS["zones"]
    through = direct._replace(path="/agents/execution/jsonrpc")

    def turn(calls: Calls, tasks: int) -> Seen:
        seen = _load(deployment, calls, seconds, rate=NORMAL)
        deployment.answers += seen.answers * tasks
        deployment.settled()
        return seen

    turn(through, 2)
    before, after = in_turns(lambda: turn(direct, 1), lambda: turn(through, 2))
    added = statistics.median(b.values["p95_ms"] - a.values["p95_ms"] for a, b in zip(before, after, strict=True))
    for label, turns, values in (
        ("question, direct", before, {}),
        ("question through both zones (< 50 ms added)", after, {"added_ms": added}),
    ):
        values |= {name: statistics.median(seen.values[name] for seen in turns) for name in turns[0].values}
        example = next((seen.example for seen in turns if seen.errors), "")
        yield Line(label, values, sum(seen.errors for seen in turns), example)


def _load(deployment: Deployment, calls: Calls, seconds: float, rate: float = 0) -> Seen:
    return load.wrk(deployment.base, deployment.key, calls, connections=CONNECTIONS, seconds=seconds, rate=rate)
