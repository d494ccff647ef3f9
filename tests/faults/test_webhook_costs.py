"""A webhook on a chatty task costs in proportion to its events, and costs other callers nothing."""

import asyncio
import time
from collections.abc import Callable
from statistics import quantiles
from typing import Any

import orjson
import psycopg
import pytest

from tests.faults.clients import Client, client
from tests.faults.conftest import Start
from tests.support.receiver import Receiver, Reply, receiver

pytestmark = pytest.mark.fault
STEPS = 1_048_576
"""Bytes of whole bodies that a webhook of 0.x gets step by step."""
SECONDS = 120.0
Property = Callable[[str, object], None]


async def reported(caller: Client, there: Receiver, **inputs: Any) -> str:
    """Send a task in 0.3 that reports its progress to a webhook; return its id."""
    said = {
        "kind": "message",
        "messageId": f"m-{time.monotonic_ns()}",
        "role": "user",
        "parts": [{"kind": "data", "data": inputs}],
    }
    configuration = {"blocking": False, "pushNotificationConfig": {"url": f"{there.url}/hook"}}
    task = await caller.result("message/send", {"message": said, "configuration": configuration}, agent="reporter")
    return str(task["id"])


async def ended(there: Receiver) -> None:
    """Wait until the receiver has heard of the end."""
    async with asyncio.timeout(SECONDS):
        while b'"completed"' not in (there.got[-1].raw if there.got else b""):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


class Costs:
    """Counts of the deliveries in a database, and of the events of their tasks."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as database:
            row = "select count(*), coalesce(sum(length(body)), 0), sum(pg_column_size(d.*)) from tasks_app_delivery d"
            self.deliveries, self.bodies, self.stored = database.execute(row).fetchone() or (0, 0, 0)
            told = "select sum(size) from tasks_app_event where task_id in (select task_id from tasks_app_delivery)"
            found = database.execute(told).fetchone()
            self.log = found[0] if found else 0


def check(there: Receiver, costs: Costs, updates: int, record_property: Property) -> None:
    """The bytes in rows, and on the wire, are linear in the size of the log."""
    posted = sum(len(got.raw) for got in there.got)
    record_property(f"MB of log of {updates} updates", round(costs.log / 1e6, 2))
    record_property(f"MB of {costs.deliveries} deliveries in the database", round(costs.stored / 1e6, 2))
    record_property(f"MB in {len(there.got)} posts", round(posted / 1e6, 2))
    assert costs.bodies == 0
    assert updates < costs.deliveries < updates + 10
    assert costs.stored < 400 * costs.deliveries
    # A body for each quarter by which the log grows, the last one, and the bytes of escapes.
    assert posted < STEPS + 7 * costs.log
    seqs = [got.seq for got in there.got]
    assert seqs == sorted(seqs)
    last = there.got[-1].json
    assert (last["status"]["state"], len(last["history"])) == ("completed", updates + 1)


async def test_a_webhook_of_0_3_on_a_chatty_task_is_linear(
    start: Start, postgres: str, record_property: Property
) -> None:
    with receiver() as there:
        node = await start(DATABASE_URL=postgres)
        async with client(node) as caller:
            await reported(caller, there, updates=300, size=6_000)
            await ended(there)
        costs = Costs(postgres)
    check(there, costs, 300, record_property)
    assert len(there.got) < 150


async def latencies(caller: Client, over: Callable[[], bool]) -> list[float]:
    """Return milliseconds of sends and gets, one after the other, until it is over."""
    found: list[float] = []
    while not over():
        began = time.perf_counter()
        task_id = await caller.send("urgent")
        await caller.get(task_id)
        found.append((time.perf_counter() - began) * 1_000)
        await asyncio.sleep(0.02)
    return found


@pytest.mark.long
async def test_others_hardly_notice_a_webhook_of_0_3_on_3000_updates(
    start: Start, postgres: str, record_property: Property
) -> None:
    with receiver() as there:
        node = await start(DATABASE_URL=postgres)
        async with client(node) as caller, client(node) as other:
            ends = time.monotonic() + 15
            quiet = await latencies(other, lambda: time.monotonic() > ends)
            # A task without a webhook costs this much by itself.
            plain = await caller.send("reporter", updates=3_000, size=330, pause=0.005)
            running = asyncio.create_task(caller.state(plain, "TASK_STATE_COMPLETED", SECONDS))
            untold = await latencies(other, running.done)
            await running
            await reported(caller, there, updates=3_000, size=330, pause=0.005)
            telling = asyncio.create_task(ended(there))
            told = await latencies(other, telling.done)
            await telling
        costs = Costs(postgres)
    for name, found in (("quiet", quiet), ("a task without a webhook", untold), ("a task with one", told)):
        cuts = quantiles(found, n=100)
        record_property(
            f"{name}: p50, p99 and most of others, ms", (round(cuts[49]), round(cuts[98]), round(max(found)))
        )
    check(there, costs, 3_000, record_property)


async def test_a_receiver_of_0_3_that_was_away_gets_the_newest_and_the_end(
    start: Start, postgres: str, record_property: Property
) -> None:
    with receiver() as there:
        there.default = Reply(503)
        node = await start(DATABASE_URL=postgres)
        async with client(node) as caller:
            task_id = await reported(caller, there, updates=300, size=6_000)
            await caller.state(task_id, "TASK_STATE_COMPLETED", SECONDS)
        there.default = Reply()
        await ended(there)
        check(there, Costs(postgres), 300, record_property)


async def test_a_webhook_of_a_large_task_is_no_cannon(start: Start, record_property: Property) -> None:
    most, calls, target = 5_000_000, 0, 120
    with receiver() as there:
        node = await start(A2A_OWNER_DELIVERY_BYTES=str(most), A2A_OWNER_WEBHOOKS="60")
        async with client(node) as caller:
            task_id = await caller.send("chatty", chunks=1, size=900_000)
            await caller.state(task_id, "TASK_STATE_COMPLETED")
            began = time.monotonic()
            refusals = []
            for place in range(target):
                config = {
                    "taskId": task_id,
                    "pushNotificationConfig": {"url": f"{there.url}/{place}", "id": f"{place}"},
                }
                reply = await caller.reply("tasks/pushNotificationConfig/set", config)
                refusals += [reply["error"]["code"]] if "error" in reply else []
                calls += len(orjson.dumps(config))
                there_is = {"id": task_id, "pushNotificationConfigId": f"{place}"}
                await caller.reply("tasks/pushNotificationConfig/delete", there_is)
            seconds = time.monotonic() - began
    sent = sum(len(got.raw) for got in there.got)
    record_property("bytes in, MB out, seconds", (calls, round(sent / 1e6, 1), round(seconds, 1)))
    assert len(refusals) >= target - 60 - seconds - 1
    assert set(refusals) == {-38008}
    assert sent <= most + 1_000_000 + seconds * most / 60
