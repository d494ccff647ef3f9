"""A client with very many calls in flight, and what others notice of it."""

import asyncio
import json
import sys
from typing import Any

import pytest

from tests.faults.bystander import bystand, percentiles
from tests.faults.clients import client, inputs
from tests.faults.conftest import Start
from tests.faults.nodes import KEY, ROOT, Node

pytestmark = pytest.mark.fault


async def hasty(node: Node, key: str, task_id: str, sockets: int, depth: int, seconds: float) -> dict[str, int]:
    """Return how many answers a client got, by kind, who has so many calls in flight on so many connections."""
    values = [str(value) for value in (node.port, key, task_id, sockets, depth, seconds)]
    command = [sys.executable, "-m", "tests.faults.hasty", *values]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    answers: dict[str, int] = json.loads(output)
    return answers


@pytest.mark.parametrize(
    ("sockets", "seconds"), [(8, 3.0), pytest.param(40, 10.0, marks=pytest.mark.long)], ids=["short", "long"]
)
async def test_thousands_of_calls_in_flight_delay_others_little(
    start: Start, postgres: str, record_property: Any, sockets: int, seconds: float
) -> None:
    node = await start(DATABASE_URL=postgres)
    (created,) = await node.lines("a2a", "keys", "create", "hasty", "--tenant", "elsewhere")
    async with client(node) as caller:
        caller.http.headers["Authorization"] = f"Bearer {created['key']}"
        task = (await caller.result("SendMessage", {"message": inputs(word="hello")}, agent="echo"))["task"]
    calm = await bystand(node, KEY, seconds)
    load = hasty(node, created["key"], task["id"], sockets, 64, 3 * seconds)
    flood = asyncio.ensure_future(load)
    await asyncio.sleep(seconds)
    meanwhile = await bystand(node, KEY, seconds)
    assert not flood.done(), "the calls were in flight all the time"
    answers = await flood
    assert set(answers) == {"result"}, "a call that waits for its turn is not refused"
    record_property(
        "calls in flight, and their answers in a second", (64 * sockets, answers["result"] // (3 * seconds))
    )
    for name, times in meanwhile.items():
        both = f"{percentiles(calm[name])} -> {percentiles(times)}"
        record_property(f"{name} of a bystander, p50 and p99 in ms, in the calm and meanwhile", both)
