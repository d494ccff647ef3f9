"""Two servers of ours, one relaying to the other, under kills: nothing is lost, and nothing is done twice."""

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from a2a.client import Client, ClientError, text_of
from a2a.client.systems import message_of
from a2a.types import Message, Part, Role, Task
from tests.faults.clients import PATIENCE
from tests.faults.conftest import SHORT, Plant, Start, shell
from tests.faults.nodes import KEY, Node
from tests.faults.outages import outage

pytestmark = pytest.mark.fault

CREDENTIALS = f"""
from tasks_app.models import Relay
from tasks_app.relays.credentials import StoredCredentials
sealed = StoredCredentials(kind="bearer", secret="{KEY}").sealed()
Relay.objects.update_or_create(name="far", defaults={{"credentials": sealed}})
"""


async def relaying(start: Start, agent: str, options: str = "attempts=100") -> tuple[Node, Node]:
    """Start the remote server, and a server with a relay to one of its agents."""
    remote = await start(folder="remote", **SHORT)
    front = await start(folder="front", A2A_RELAYS=relays_to(remote, agent, options), **SHORT)
    await asyncio.to_thread(shell, front.folder, CREDENTIALS, **front.settings)
    return front, remote


def relays_to(remote: Node, agent: str, options: str = "attempts=100") -> str:
    """Return the setting for a relay to an agent of that server."""
    return f"far={remote.base}/agents/{agent}/ {options}"


def rows(node: Node, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(node.folder / "taskdesk.sqlite3", timeout=PATIENCE)) as connection:
        return list(connection.execute(query))


def chunks(node: Node) -> str:
    """Return the texts of all chunks in the log, in order."""
    query = "select payload from tasks_app_event where kind = 'artifactUpdate' order by task_id, seq"
    values = [orjson.loads(payload) for (payload,) in rows(node, query)]
    return "".join(part["text"] for value in values for part in value["artifact"]["parts"])


def count_to(words: int) -> str:
    return "".join(f"{number} " for number in range(words))


async def sent(client: Client, message: Message) -> str:
    """Return the id of the message's task. The same message is sent until a server has answered."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                task = await client.send(message, return_immediately=True)
            except ClientError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(0.2)
            else:
                assert isinstance(task, Task)
                return task.id


async def finished(client: Client, task_id: str) -> Task:
    """Return the task, once it has ended."""
    async with asyncio.timeout(4 * PATIENCE):
        while True:
            try:
                task = await client.get_task(task_id)
                if task.status.state in {"completed", "failed", "canceled", "rejected"}:
                    return task
            except ClientError as error:
                if not error.retryable:
                    raise
            await asyncio.sleep(0.2)


async def passed(front: Node, words: int) -> None:
    """Wait until so many words are in the log."""
    async with asyncio.timeout(PATIENCE):
        while len(chunks(front).split()) < words:  # noqa: ASYNC110  # another process writes them
            await asyncio.sleep(0.05)


def wish(number: int, **values: Any) -> Message:
    return message_of(Message(message_id=f"m-{number}", role=Role.USER, parts=(Part(data=values),)))


async def test_a_killed_relay_goes_on_with_the_stream_where_its_log_ends(start: Start) -> None:
    front, remote = await relaying(start, "numbers")
    async with Client(f"{front.base}/agents/far/", token=KEY) as client:
        task_id = await sent(client, wish(0, words=40, pause=0.08))
        for so_many in (8, 20):
            await passed(front, so_many)
            front.kill()
            await front.start()
        task = await finished(client, task_id)
    assert (task.status.state, text_of(task)) == ("completed", count_to(40))
    assert chunks(front) == count_to(40)
    reports = [said.text for said in task.history if said.role == "agent" and said.text.isdigit()]
    assert reports == ["9", "19", "29", "39"]
    assert rows(remote, "select count(*) from tasks_app_task") == [(1,)]


async def under_kills(
    front: Node, victims: list[Node], remote: Node, *, tasks: int, words: int, kills: int, seed: int
) -> None:
    """Send messages through the relay of a server while it, the remote server or another of the victims is killed."""
    chance = random.Random(seed)  # noqa: S311  # the same kills again
    async with Client(f"{front.base}/agents/far/", token=KEY) as client:

        async def calls() -> list[str]:
            ids = []
            for number in range(tasks):
                ids.append(await sent(client, wish(number, words=words)))
                await asyncio.sleep(chance.uniform(0, 0.2))
            return ids

        sending = asyncio.create_task(calls())
        for _ in range(kills):
            await asyncio.sleep(chance.uniform(0.3, 1.2))
            victim = chance.choice(victims)
            victim.kill()
            await victim.start()
        results = [await finished(client, task_id) for task_id in await sending]
    assert [(task.status.state, text_of(task)) for task in results] == [("completed", count_to(words))] * tasks
    assert rows(remote, "select count(*), count(distinct context_id) from tasks_app_task") == [(tasks, tasks)]
    assert rows(remote, "select count(*) from tasks_app_event where kind = 'message'") == [(0,)]


async def test_random_kills_of_both_servers_lose_nothing_and_do_nothing_twice(start: Start) -> None:
    front, remote = await relaying(start, "numbers")
    await under_kills(front, [front, remote], remote, tasks=5, words=20, kills=3, seed=12)


async def test_random_kills_of_a_worker_and_what_is_around_it_lose_nothing(plant: Plant, start: Start) -> None:
    remote = await start(folder="remote", **SHORT)
    plant.settings.update(SHORT, A2A_OUTBOUND_LOOPBACK="yes", A2A_RELAYS=relays_to(remote, "numbers"))
    web, worker = await plant.web(), await plant.worker()
    await asyncio.to_thread(shell, web.folder, CREDENTIALS, **web.settings)
    await under_kills(web, [worker, worker, web, remote], remote, tasks=5, words=20, kills=4, seed=5)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_many_random_kills_of_both_servers_lose_nothing_and_do_nothing_twice(start: Start, seed: int) -> None:
    front, remote = await relaying(start, "numbers")
    await under_kills(front, [front, remote], remote, tasks=30, words=60, kills=15, seed=seed)


async def test_a_relay_waits_for_a_database_that_is_away(
    start: Start, postgres_server: str, postgres: str, tmp_path: Path
) -> None:
    remote, gate = await start(folder="remote", **SHORT), tmp_path / "open"
    settings = {"DATABASE_URL": postgres, "A2A_RELAYS": relays_to(remote, "sleeper", "attempts=1")}
    front = await start(folder="front", **settings)
    await asyncio.to_thread(shell, front.folder, CREDENTIALS, **front.settings)
    async with Client(f"{front.base}/agents/far/", token=KEY) as client:
        task_id = await sent(client, wish(0, seconds=300, until=str(gate)))
        async with asyncio.timeout(PATIENCE):
            while not rows(remote, "select 1 from tasks_app_task where state = 'working'"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        with outage(postgres_server, postgres):
            gate.touch()
            await front.logs("a relay waits for the database")
        task = await finished(client, task_id)
    assert (task.status.state, text_of(task)) == ("completed", "awake")
    assert [run["outcome"] for run in (await front.shown(task_id))["runs"]] == ["completed"]
