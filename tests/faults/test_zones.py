"""Two zones as processes: over a queue that is killed, or whose execution is, and over HTTPS with certificates."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from tasks_app.zones.queue import Queue
from tests.faults.clients import PATIENCE, Client, client, ended, state, words
from tests.faults.conftest import NEW_KEY, Start, shell
from tests.faults.nodes import KEY, Execution, Node, Redis
from tests.faults.outages import outage
from tests.faults.zone_pairs import AGENTS, ANSWER, SECRET, Zones, answer, asked, outlive, rows, start_zones
from tests.support.tls import certificate, tls_front

pytestmark = pytest.mark.fault


@pytest.fixture
async def zones(start: Start, nodes: list[Node], redis: Redis, tmp_path: Path, migrated_file: Path) -> Zones:
    return await start_zones(redis.url, start, nodes, tmp_path, migrated_file)


def noted(file: Path) -> list[str]:
    """Return the attempts of the calls that the agent has written down."""
    return [line.split()[1] for line in file.read_text("ascii").splitlines()]


async def seen(caller: Client, task_id: str, text: str) -> None:
    """Wait until a task has this text as its answer so far."""
    async with asyncio.timeout(PATIENCE):
        while True:
            task = await caller.get(task_id)
            if "artifacts" in task and answer(task) == text:
                return
            await asyncio.sleep(0.05)


# ------------------------------------------------------------------ queue


@pytest.mark.long
@pytest.mark.requirement("ZONE-10")
async def test_an_answer_arrives_once_after_both_zones_were_killed(zones: Zones, tmp_path: Path) -> None:
    file = tmp_path / "calls"
    async with client(zones.verification) as caller:
        task_id = await asked(caller, str(file))
        await seen(caller, task_id, "attempt 1 ")
        zones.verification.kill()
        await zones.verification.start()
        zones.execution.kill()
        await zones.execution.start()
        task = await ended(caller, task_id, 2 * PATIENCE)
    attempts = noted(file)
    assert attempts == [str(number) for number in range(1, len(attempts) + 1)]
    assert (state(task), answer(task)) == ("TASK_STATE_COMPLETED", ANSWER.format(attempts[-1]))
    assert [agent for (agent,) in rows(zones.execution, "select agent from tasks_app_task")] == ["answers"]


@pytest.mark.slow
@pytest.mark.requirement("ZONE-10")
@pytest.mark.parametrize("is_killed", [pytest.param(True, marks=pytest.mark.long), False], ids=["killed", "frozen"])
async def test_a_call_without_an_answer_is_sent_again_and_executed_once(zones: Zones, is_killed: bool) -> None:
    """A killed zone loses the call that it has taken from the queue. A frozen one comes back to it, and then to the
    same call again."""
    async with client(zones.verification) as caller:
        zones.execution.tell(signal.SIGSTOP)
        task_id = await asked(caller, "hello")
        await zones.verification.logs("no worker has answered within")
        if is_killed:
            zones.execution.kill()
            await zones.execution.start()
        else:
            zones.execution.tell(signal.SIGCONT)
        task = await ended(caller, task_id, 2 * PATIENCE)
    assert (state(task), answer(task)) == ("TASK_STATE_COMPLETED", ANSWER.format(1))
    assert rows(zones.execution, "select state from tasks_app_task") == [("completed",)]


@pytest.mark.slow
@pytest.mark.requirement("ZONE-10")
async def test_a_database_of_the_execution_that_is_away_fails_no_task(
    zones: Zones, postgres_server: str, postgres: str
) -> None:
    zones.execution.settings["DATABASE_URL"] = postgres
    await asyncio.to_thread(shell, zones.execution.folder, NEW_KEY, **zones.execution.settings)
    await again(zones)
    async with client(zones.verification) as caller:
        with outage(postgres_server, postgres):
            task_id = await asked(caller, "hello")
            await zones.verification.logs("for now: ")
            await asyncio.sleep(8)  # Longer than five attempts, a second apart.
        task = await ended(caller, task_id)
    assert (state(task), answer(task)) == ("TASK_STATE_COMPLETED", ANSWER.format(1))
    assert [run["outcome"] for run in (await zones.verification.shown(task_id))["runs"]] == ["completed"]


@pytest.mark.slow
@pytest.mark.requirement("ZONE-10")
async def test_both_zones_go_on_when_their_broker_comes_back(zones: Zones, redis: Redis) -> None:
    await outlive(redis, zones)


async def again(zones: Zones, **settings: str) -> Execution:
    """Start the execution zone again, with other settings."""
    zones.execution.kill()
    zones.execution.settings.update(settings)
    return await zones.execution.start()


@asynccontextmanager
async def waiting(redis: Redis, execution: Execution, **params: str) -> AsyncIterator[asyncio.Task[bytes]]:
    """Give a call through the queue that waits for a task, which is at work."""
    facts = {"channel": "C1", "text": "hello", "bot_token": "none"}
    call = {"jsonrpc": "2.0", "id": "1", "method": "execute_task", "params": facts | params}
    work = asyncio.create_task(Queue(redis.url, SECRET, KEY).carry(orjson.dumps(call)))
    async with asyncio.timeout(PATIENCE):
        while not rows(execution, "select id from tasks_app_task where state = 'working'"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    yield work
    work.cancel()


async def test_neither_a_call_that_waits_nor_a_thread_holds_up_the_end_of_an_execution_zone(
    zones: Zones, redis: Redis
) -> None:
    execution = await again(zones, A2A_GRACE_SECONDS="1")
    async with waiting(redis, execution, agent="stubborn") as work:
        assert await execution.stop(signal.SIGTERM) == 0
        reply = orjson.loads(await work)
    assert reply["error"]["data"]["reason"] == "UNAVAILABLE"
    assert "Traceback" not in execution.log


async def test_the_second_signal_ends_an_execution_zone_at_once(zones: Zones, redis: Redis, tmp_path: Path) -> None:
    execution = await again(zones, A2A_GRACE_SECONDS="60")
    async with waiting(redis, execution, text=str(tmp_path / "calls")):
        execution.tell(signal.SIGTERM)
        await execution.logs("1 run has 60 s to end")
        assert await execution.stop(signal.SIGTERM) == 1


# ------------------------------------------------------------------ HTTPS


async def verification(start: Start, port: int, **settings: str) -> Node:
    calls = {"A2A_EXECUTION": f"https://localhost:{port}", "A2A_EXECUTION_KEY": KEY, "A2A_DEFAULT_AGENT": "execution"}
    return await start(folder="verification", **calls, **settings)


@pytest.mark.long
@pytest.mark.requirement("ZONE-10")
async def test_calls_go_over_tls_to_a_zone_whose_authority_is_trusted(start: Start, tmp_path: Path) -> None:
    file = certificate("localhost", tmp_path)
    execution = await start(folder="execution", **AGENTS)
    async with tls_front(file, execution.port) as port:
        trusting = await verification(start, port, SSL_CERT_FILE=str(file))
        async with client(trusting) as caller:
            task = await ended(caller, await asked(caller, "hello"))
        assert (state(task), answer(task)) == ("TASK_STATE_COMPLETED", ANSWER.format(1))
        trusting.kill()
        doubting = await verification(start, port)
        async with client(doubting) as caller:
            task = await ended(caller, await asked(caller, "again"))
    assert state(task) == "TASK_STATE_FAILED"
    assert words(task) == "The execution zone has no certificate that this deployment trusts."
    assert "self-signed certificate" in doubting.log
    assert "by its file in SSL_CERT_FILE" in doubting.log
    assert len(rows(execution, "select id from tasks_app_task")) == 1
