"""All processes of a production: killed at the same moment, and replaced one after the other, in the middle of load."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.faults.conftest import Plant
from tests.faults.nodes import Node
from tests.faults.traffic import Traffic, traffic
from tests.support.receiver import receiver
from tests.support.servers import Cluster

pytestmark = pytest.mark.fault
SETTINGS = {"A2A_OUTBOUND_HOSTS": "127.0.0.1", "A2A_PING_SECONDS": "0.5"}
"""The receiver of webhooks is on this machine. Waiting calls have sent their headers when their process ends."""
TASKS = 12
"""Tasks that end before a kill, and between two steps of a deployment: enough for some of each kind."""


@asynccontextmanager
async def loaded(plant: Plant, record_property: Any) -> AsyncIterator[tuple[Traffic, list[Node], list[Node]]]:
    """Give two webs and two workers with traffic to both. Check at the end that all of it is right, and that an agent
    that may be tried once was interrupted."""
    workers: list[Node] = [*await asyncio.gather(*(plant.worker(**SETTINGS) for _ in range(2)))]
    webs = await asyncio.gather(*(plant.web(**SETTINGS) for _ in range(2)))
    await webs[0].lines("a2a", "budgets", "set", "10000")
    with receiver() as hook:
        async with traffic(webs, plant.folder, hook) as found:
            async with found.flowing():
                yield found, webs, workers
            await found.assert_right(plant.settings["DATABASE_URL"])
    assert not [node.log for node in plant.nodes if "Traceback" in node.log]
    assert found.interrupted()
    record_property("tasks", len(found.tasks))
    record_property("tasks of agents tried once that were interrupted", len(found.interrupted()))
    record_property("met instead of answers", dict(found.faults))


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, pytest.param(2, marks=pytest.mark.long)])
async def test_a_kill_of_all_parts_at_once_loses_nothing_and_does_nothing_twice(
    crashable: Plant, cluster: Cluster, kills: int, record_property: Any
) -> None:
    # No more than two kills: an agent with three attempts survives them.
    async with loaded(crashable, record_property) as (found, webs, workers):
        for _ in range(kills):
            await found.more(TASKS)
            await found.begun(cluster.url, workers[0])
            for node in (*webs, *workers):
                node.tell(signal.SIGKILL)
            cluster.tell(signal.SIGKILL)
            crashable.redis.kill()
            for node in (*webs, *workers):
                node.kill()
            cluster.stop(signal.SIGKILL)
            await asyncio.to_thread(cluster.start)
            crashable.redis.start()
            await asyncio.gather(*(node.start() for node in (*webs, *workers)))
            await found.more(TASKS)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, pytest.param(3, marks=pytest.mark.long)])
async def test_a_deployment_under_load_fails_no_call_and_calls_no_agent_twice(
    plant: Plant, rounds: int, record_property: Any
) -> None:
    async with loaded(plant, record_property) as (found, webs, workers):
        for _ in range(rounds):
            for node in (*workers, *webs):
                await found.more(TASKS)
                if node in workers:
                    await found.begun(plant.settings["DATABASE_URL"], node)
                assert await node.stop(signal.SIGTERM) == 0
                await node.start()
        await found.more(TASKS)
