"""Measurements in pairs: the same calls in two ways, in turns, and the ratio of the two."""

import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import partial
from uuid import uuid4

import orjson

from tests.bench import load
from tests.bench.load import COMPLETED, DIGITS, MARK, Calls, Flood, Line, LoadFailed, Seen
from tests.bench.shapes import Deployment, deployed
from tests.support.issuer import AUDIENCE, local_issuer

CONNECTIONS, CALLERS = 32, 8
TURNS = 6
"""Turns of each way: an odd moment of the machine hits one turn of one way."""
STARTS, TURNS_OF_START = 16, 2
"""Starts of the processes that are compared, and turns of each way in each: two processes of the same code differ by up
to a tenth, much more than two turns of one process."""
SHORTER = 6
"""The divisor of the time of a turn of such processes, because there are so many."""
IDS = 200
PLENTY = "1000000000"
WRONG_KEYS, WRONG_TOKENS, WRONG_OPERATOR_TOKENS = 2_500, 1_000, 150
"""Wrong keys, wrong tokens, and wrong tokens of operators, a second."""
MANY = 5_000
"""Addresses of a flood, each of which stays below its limit of wrong keys."""
PLAIN = {"A2A_AUDIT": "false", "A2A_ADDRESS_FAILURES": "0"}
GUARDED = {"A2A_CALLER_RATE": PLENTY, "A2A_CALLER_BURST": PLENTY, "A2A_ADDRESS_CALLS": PLENTY}
PROXIED = {"A2A_TRUSTED_PROXIES": "127.0.0.1"}
"""Lets a flood say in a header which addresses it comes from."""
INSIDE = {"A2A_OUTBOUND_HOSTS": "127.0.0.1"}
"""Lets the server fetch the keys of an issuer on this machine."""
BUDGET = {"X-Budget-USD": "1"}
BEHIND_TLS = {"A2A_TRUST_FORWARDED": "x-forwarded"}
FORWARDED = {"X-Forwarded-Proto": "https"}
"""The header of a proxy that ends TLS, without which ACP answers nothing. All sends that are compared have it."""

Turn = Callable[[], Seen]
Pair = tuple[list[Seen], list[Seen]]
"""The results of two ways, turn by turn."""


def guards(deployment: Deployment, seconds: float) -> Iterator[Line]:
    """Compare a process with rate limits, budgets and audit to one without any of them."""
    with ExitStack() as stack:
        plain, guarded = (stack.enter_context(deployed(deployment.shape, **more)) for more in (PLAIN, GUARDED))
        budgeted = guarded.new_key("bench-budget")
        guarded.manage("a2a", "budgets", "set", "1000000", "--principal", "bench-budget")

        def turn(one: Deployment, calls: Calls, key: str = "") -> Turn:
            brief = partial(load.wrk, connections=CONNECTIONS, seconds=seconds / SHORTER)
            return partial(weighed, one, partial(brief, one.base, key or one.key, calls))

        def send(one: Deployment, agent: str, key: str = "") -> Turn:
            calls = load.send(agent, wait=True, expected=COMPLETED)
            return lambda: stored(one, turn(one, calls._replace(headers=BUDGET if one is guarded else {}), key)())

        send(plain, "bench-quick")()  # There are tasks to get.
        send(guarded, "bench-quick")()
        pairs = {
            "send": (send(plain, "bench-quick"), send(guarded, "bench-quick")),
            "get": (turn(plain, gets(plain)), turn(guarded, gets(guarded))),
            "send without a cost, stored budget": (
                send(plain, "bench-quick"),
                send(guarded, "bench-quick", budgeted),
            ),
            "send with a cost": (send(plain, "bench-priced-quick"), send(guarded, "bench-priced-quick")),
            "send with a cost, stored budget": (
                send(plain, "bench-priced-quick"),
                send(guarded, "bench-priced-quick", budgeted),
            ),
        }
        for label, (before, after) in over_starts(pairs, (plain, guarded)).items():
            yield median(f"{label}: no guards", before)
            yield median(f"{label}: limits, budgets, audit", after, before, "per_second")
        for one in (plain, guarded):
            if (states := one.settled()) != {"completed": one.answers}:
                raise LoadFailed(f"{one.answers} calls were answered, and the tasks are {states}")


def weighed(deployment: Deployment, once: Turn) -> Seen:
    """Add the processor time that the server and its worker used for a call. The databases are not among them."""
    before = sum(process.cpu() for process in deployment.processes.values())
    seen = once()
    spent = sum(process.cpu() for process in deployment.processes.values()) - before
    return seen._replace(values=seen.values | {"cpu_ms": 1000 * spent / max(1, seen.answers)})


def stored(deployment: Deployment, seen: Seen) -> Seen:
    """Count the tasks that a load has made."""
    deployment.answers += seen.answers
    return seen


def gets(deployment: Deployment) -> Calls:
    return Calls("/jsonrpc", COMPLETED, "GetTask", {"id": MARK}, deployment.ids(IDS))


def languages(deployment: Deployment, seconds: float) -> Iterator[Line]:
    """Compare sends in other languages to those in A2A 1.0, to the same agent. All are stored and recorded alike."""

    def turn(calls: Calls) -> Turn:
        calls = calls._replace(headers={**calls.headers, **FORWARDED})

        def whole() -> Seen:
            seen = load.wrk(deployment.base, deployment.key, calls, connections=CONNECTIONS, seconds=seconds)
            deployment.settled()  # What is left to run would be a part of the next turn.
            return seen

        return lambda: stored(deployment, weighed(deployment, whole))

    quick = load.send("bench-quick", wait=True, expected=COMPLETED)
    plain = {
        "VAPORA": quick,
        "ACP": load.send("bench-queued", wait=False, expected='"task"'),
        "zones": load.send("bench-queued", wait=True, expected=COMPLETED),
        "SPARC": quick,
    }
    for name, calls in load.SENDS.items():
        turn(calls)()
        before, after = in_turns(turn(plain[name]), turn(calls))
        yield median(f"send in A2A 1.0, beside {name}", before)
        yield median(f"send in {name}", after, before, "per_second")


def floods(deployment: Deployment, seconds: float) -> Iterator[Line]:
    """Compare gets of some callers beside floods of wrong keys and tokens to those without a flood."""
    keys = Flood(WRONG_KEYS, f"tdk_guess-{uuid4().hex}-")
    yield from _beside(deployment, seconds, keys, f"{WRONG_KEYS} wrong keys a second of one address")
    keys = keys._replace(addresses=MANY)
    yield from _beside(deployment, seconds, keys, f"{WRONG_KEYS} wrong keys a second of many addresses")
    pages = Flood(WRONG_OPERATOR_TOKENS, "tdo_guess-", addresses=MANY, path="/api/v1/tasks/")
    yield from _beside(deployment, seconds, pages, f"{WRONG_OPERATOR_TOKENS} wrong tokens of operators a second")
    with local_issuer() as issuer:
        rules = orjson.dumps({issuer.url: {"audience": AUDIENCE}}).decode()
        verifying = PROXIED | INSIDE | {"A2A_SCHEMES": "bearer,oidc", "A2A_ISSUERS": rules}
        with deployed(deployment.shape, **verifying) as other:
            start, _, signature = issuer.token().rpartition(".")
            tokens = Flood(WRONG_TOKENS, f"{start}.", signature[DIGITS:], MANY)
            yield from _beside(other, seconds, tokens, f"{WRONG_TOKENS} wrong tokens a second of many addresses")


def _beside(deployment: Deployment, seconds: float, flood: Flood, label: str) -> Iterator[Line]:
    """Compare gets beside one flood to those without it."""
    calls = gets(deployment)

    def turn(is_flooded: bool) -> Seen:
        with load.flooded(deployment.base, flood) if is_flooded else nullcontext():
            return load.wrk(deployment.base, deployment.key, calls, connections=CALLERS, seconds=seconds)

    turn(True)
    calm, beside = in_turns(partial(turn, False), partial(turn, True))
    yield median(f"{CALLERS} callers", calm)
    yield median(f"{CALLERS} callers, {label}", beside, calm, "p99_ms")


def over_starts(pairs: dict[str, tuple[Turn, Turn]], both: tuple[Deployment, Deployment]) -> dict[str, Pair]:
    """Return the results of each pair in turns, over several starts of the processes."""
    results: dict[str, Pair] = {label: ([], []) for label in pairs}
    for number in range(STARTS):
        for one in both[:: -1 if number % 2 else 1]:
            if number:
                one.stop()
                one.start()
            one.analyze()
        for label, ways in pairs.items():
            for way in ways:
                way()  # What first calls cost is no part of the result.
            for whole, turns in zip(results[label], in_turns(*ways, TURNS_OF_START), strict=True):
                whole.extend(turns)
    return results


def in_turns(first: Turn, second: Turn, turns: int = TURNS) -> Pair:
    """Return the results of both ways in turns, in which each comes before the other as often as after it."""
    results: Pair = ([], [])
    for number in range(turns):
        for way in (0, 1) if number % 2 else (1, 0):
            results[way].append((first, second)[way]())
    return results


def ratio(turns: list[Seen], others: list[Seen], name: str) -> float:
    """Return the median of the ratios of a number in one way to that in the other."""
    pairs = zip(turns, others, strict=True)
    return statistics.median(one.values[name] / max(other.values[name], 1e-9) for one, other in pairs)


def median(label: str, turns: list[Seen], others: list[Seen] | None = None, name: str = "") -> Line:
    """Return the medians of all turns, with that of the ratio of a number to the other way's if there is one."""
    values = {key: statistics.median(seen.values[key] for seen in turns) for key in turns[0].values}
    if others is not None:
        values["ratio"] = ratio(turns, others, name)
        if values.get("cpu_ms"):
            values["cpu_ratio"] = ratio(turns, others, "cpu_ms")
    return Line(
        label, values, sum(seen.errors for seen in turns), next((seen.example for seen in turns if seen.errors), "")
    )
