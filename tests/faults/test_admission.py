"""More than can be done: refused at once, with the time to come again, and at no other owner's cost."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.bystander import bystand
from tests.faults.clients import HEADERS, PATIENCE, Client, envelope, inputs
from tests.faults.conftest import SHORT, Start
from tests.faults.nodes import Node, manage
from tests.faults.pusher import pushed

pytestmark = pytest.mark.fault
SLACK = 10.0
"""How much longer a promise may take on a machine that others use too: a slot comes free later still."""
STARTS = 2.0
"""Seconds within which a task of another owner starts."""


def key_of(name: str) -> str:
    return f"tdk_{name}-of-the-fault-tests"


@asynccontextmanager
async def person(node: Node, name: str) -> AsyncIterator[Client]:
    """Give a caller with a key of their own."""
    key = key_of(name)
    code = f"from tasks_app.callers import access; access.new_key('{name}', key='{key}')"
    done = await asyncio.to_thread(manage, node.folder, "shell", "--no-imports", "-c", code, **node.settings)
    assert done.returncode == 0, done.stderr
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(
        headers=HEADERS | {"Authorization": f"Bearer {key}"}, timeout=60, limits=limits
    ) as http:
        yield Client(node, http)


def offered(seconds: float, until: str = "") -> bytes:
    """Return a call for a task that takes so long, or until that file exists; it does not wait for it."""
    said = inputs(seconds=seconds, until=until)
    return envelope("SendMessage", {"message": said, "configuration": {"returnImmediately": True}})


async def offer(caller: Client, seconds: float, until: str = "") -> httpx.Response:
    return await caller.http.post(caller.url("sleeper"), content=offered(seconds, until))


async def run_once(caller: Client) -> float:
    """Return seconds until a task that takes no time has ended."""
    since = time.monotonic()
    await caller.state(await caller.send("sleeper", seconds=0), "TASK_STATE_COMPLETED")
    return time.monotonic() - since


async def test_another_owner_does_not_wait_behind_a_thousand_tasks(start: Start, record_property: Any) -> None:
    node = await start(A2A_ASYNC_SLOTS="16", **SHORT)
    async with person(node, "ann") as ann, person(node, "bob") as bob:
        for _ in range(10):
            answer = await ann.http.post(
                ann.url("sleeper"), content=b"[%s]" % b",".join(offered(30) for _ in range(100))
            )
            assert all("result" in reply for reply in answer.json())
        spans = [await run_once(bob) for _ in range(5)]
    record_property("seconds for tasks of another owner behind 1,000", [round(span, 2) for span in spans])
    assert max(spans) < SLACK * STARTS


async def test_sends_beyond_the_limit_are_refused_at_once_and_the_rest_is_done(start: Start, tmp_path: Path) -> None:
    node, gate = await start(A2A_OWNER_TASKS="20", **SHORT), tmp_path / "open"
    async with person(node, "ann") as ann, person(node, "bob") as bob:
        await run_once(ann)  # from here on tasks are counted
        accepted = 0
        async with asyncio.timeout(PATIENCE):
            while accepted < 20:
                # What is stored while the tasks are counted may count twice until the next count.
                accepted += (await offer(ann, 300, str(gate))).status_code == 200
                await asyncio.sleep(0.02)
        answers = [await offer(ann, 300, str(gate)) for _ in range(60)]
        accepted += [answer.status_code for answer in answers].count(200)
        assert accepted < 30, "counts are taken now and then"
        for answer in answers[30:]:
            assert answer.status_code == 429
            assert 1 <= int(answer.headers["Retry-After"]) <= 60
            assert answer.json()["error"]["code"] == -38008
        assert await run_once(bob) < SLACK * STARTS
        gate.touch()
        await ann.completed(accepted + 1)
        async with asyncio.timeout(PATIENCE):
            while (await offer(ann, 0)).status_code != 200:  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.05)


@pytest.mark.long
async def test_ten_times_what_can_be_done_for_a_minute(start: Start, record_property: Any) -> None:
    slots, seconds = 20, 60.0
    pushers = 10 * slots // 2
    node = await start(A2A_ASYNC_SLOTS=str(slots), A2A_OWNER_TASKS="200", A2A_SWEEP_SECONDS="1")
    async with person(node, "ann") as ann, person(node, "bob") as bob, person(node, "cem"):
        calm = await bystand(node, key_of("cem"), 10)
        await run_once(ann)
        ends = time.monotonic() + seconds

        async def other() -> list[float]:
            spans = []
            while time.monotonic() < ends:
                spans.append(await run_once(bob))
                await asyncio.sleep(3)
            return spans

        # All callers together offer ten tasks of a second for each slot, one after another.
        seen, spans, loaded = await asyncio.gather(
            pushed(node, key_of("ann"), seconds, pushers), other(), bystand(node, key_of("cem"), seconds)
        )
        accepted, refused = seen.statuses["200"], seen.statuses["429"]
        await ann.completed(accepted + 1, 4 * PATIENCE)
    record_property("offered, accepted, refused", (len(seen.spans), accepted, refused))
    record_property("accepted and lost", 0)
    record_property("seconds of Retry-After", (min(seen.waits), max(seen.waits)))
    record_property("answers, p50 and p99 in ms", (at(seen.spans, 50), at(seen.spans, 99)))
    record_property("seconds for a task of another owner, most", round(max(spans), 2))
    for name in calm:
        both = [tuple(at(spans_of[name], percent) for percent in (50, 99)) for spans_of in (calm, loaded)]
        record_property(f"{name} of a bystander, p50 and p99 in ms, in the calm and meanwhile", both)
    assert set(seen.statuses) == {"200", "429"}
    assert len(seen.waits) == refused > accepted
    assert max(spans) < SLACK * STARTS


def at(spans: list[float], percent: int) -> float:
    """Return milliseconds of a percentile."""
    return round(1000 * statistics.quantiles(spans, n=100)[percent - 1], 1)
