"""RabbitMQ as the broker of workers and as the queue of zones."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.clients import PATIENCE, Client, client
from tests.faults.conftest import Plant, Start
from tests.faults.nodes import Node
from tests.faults.rabbitmq import RabbitMQ, missing
from tests.faults.zone_pairs import outlive, start_zones
from tests.support.workers import NOT_TRIED

pytestmark = [pytest.mark.fault, pytest.mark.slow]
NO_SWEEPS = {"A2A_SWEEP_SECONDS": "600"}
"""Tasks start by messages of the broker alone."""


@pytest.fixture
def rabbit(tmp_path: Path) -> Iterator[RabbitMQ]:
    if why := missing():
        pytest.skip(f"{NOT_TRIED}: RabbitMQ: {why}")
    broker = RabbitMQ(tmp_path / "rabbitmq")
    broker.start()
    yield broker
    broker.close()


async def completed(caller: Client, count: int) -> None:
    """Have an agent called as often at the same time."""
    async with asyncio.timeout(PATIENCE):
        for task_id in [await caller.send("once", seconds=0.05) for _ in range(count)]:
            await caller.state(task_id, "TASK_STATE_COMPLETED")


@pytest.mark.parametrize("processes", [(), ("--processes", "2")], ids=["threads", "processes"])
async def test_workers_are_woken_before_and_after_the_broker_was_killed(
    plant: Plant, rabbit: RabbitMQ, processes: tuple[str, ...]
) -> None:
    broker = {"CELERY_BROKER_URL": rabbit.url, **NO_SWEEPS}
    web = await plant.web(**broker)
    worker = await plant.worker(*processes, **broker)
    async with client(web) as caller:
        await completed(caller, 20)
        rabbit.kill()
        meanwhile = await caller.send("once", seconds=0)
        await web.logs("the broker does not answer")
        rabbit.start()
        await web.logs("the broker answers again")
        await caller.state(meanwhile, "TASK_STATE_COMPLETED")
        await completed(caller, 20)
    assert await worker.stop(signal.SIGTERM) == 0
    assert "Traceback" not in web.log + worker.log


@pytest.mark.long
async def test_a_frozen_broker_holds_up_neither_calls_nor_the_end(plant: Plant, rabbit: RabbitMQ) -> None:
    broker = {"CELERY_BROKER_URL": rabbit.url}
    web, other = await plant.web(**broker, **NO_SWEEPS), await plant.web(**broker)
    worker = await plant.worker(**broker)
    async with client(web) as caller, client(other) as second:
        await completed(caller, 1)
        rabbit.tell(signal.SIGSTOP)
        async with asyncio.timeout(PATIENCE):
            while "the broker does not answer" not in web.log:  # one message of many waits for an answer
                await completed(caller, 1)
        await completed(second, 1)
        assert await other.stop(signal.SIGTERM) == 0
        rabbit.tell(signal.SIGCONT)
        await completed(caller, 1)
        await web.logs("the broker answers again")
        rabbit.tell(signal.SIGSTOP)
        assert await worker.stop(signal.SIGTERM, PATIENCE) == 0
    assert "Traceback" not in web.log + other.log + worker.log


async def test_both_zones_go_on_when_rabbitmq_comes_back(
    start: Start, nodes: list[Node], rabbit: RabbitMQ, tmp_path: Path, migrated_file: Path
) -> None:
    await outlive(rabbit, await start_zones(rabbit.url, start, nodes, tmp_path, migrated_file))
