"""Agents that are added, changed and broken while servers and workers run."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.clients import PATIENCE, Client, client, inputs
from tests.faults.conftest import SHORT, Plant, Start
from tests.faults.nodes import Node

pytestmark = [pytest.mark.fault, pytest.mark.requirement("ZONE-22")]

AGENT = '''
import time
from pathlib import Path
from a2a import Run, agent
from _words_of_test import WORD

@agent(name="{name}", attempts=2, **{options})
def greet(run: Run, until: str = ""):
    """Greets, waits for a file if there is to be one, and greets again."""
    yield WORD
    while until and not run.cancelled and not Path(until).exists():
        time.sleep(0.05)
    yield " " + WORD
'''


class Folder:
    """A folder of agents that changes while processes run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.say("old")
        self.add("first")

    def say(self, word: str) -> None:
        (self.path / "_words_of_test.py").write_text(f'WORD = "{word}"\n')

    def add(self, name: str, **options: Any) -> None:
        (self.path / f"{name}_of_test.py").write_text(AGENT.format(name=name, options=options))

    @property
    def broken(self) -> Path:
        return self.path / "broken_of_test.py"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "agents")


async def sent(caller: Client, agent: str, until: str = "") -> str:
    """Send to an agent once it is there; return the task."""
    params = {"message": inputs(until=until), "configuration": {"returnImmediately": True}}
    async with asyncio.timeout(PATIENCE):
        while True:
            response = await caller.http.post(
                caller.url(), json={"jsonrpc": "2.0", "id": 1, "method": "SendMessage"} | at(agent, params)
            )
            if "result" in (reply := response.json()):
                return str(reply["result"]["task"]["id"])
            await asyncio.sleep(0.1)


def at(agent: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"params": params | {"metadata": {"agent": agent}}}


async def text_of(caller: Client, task_id: str) -> str:
    task = await caller.state(task_id, "TASK_STATE_COMPLETED")
    return "".join(part["text"] for artifact in task["artifacts"] for part in artifact["parts"])


async def answers(caller: Client, agent: str, words: str) -> None:
    """Wait until an agent answers with these words."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if await text_of(caller, await sent(caller, agent)) == words:
                return
            await asyncio.sleep(0.1)


async def is_gone(caller: Client, agent: str) -> None:
    """Wait until there is no card of an agent."""
    async with asyncio.timeout(PATIENCE):
        while True:
            card = await caller.http.get(f"{caller.node.base}/agents/{agent}/.well-known/agent-card.json")
            if card.status_code == 404:
                return
            await asyncio.sleep(0.1)


async def troubles(node: Node, suits: Callable[[list[str]], bool]) -> None:
    """Wait until the troubles of the processes, as operators see them, are such."""
    async with asyncio.timeout(PATIENCE):
        while True:
            rows = await node.lines("a2a", "processes")
            said = [row["troubles"] for row in rows if row["role"] != "operator" and not row["ended_at"]]
            if suits([str(sentences) for sentences in said]):
                return
            await asyncio.sleep(0.2)


def all_say(words: str) -> Callable[[list[str]], bool]:
    return lambda sentences: bool(sentences) and all(words in each for each in sentences)


async def goes_through_changes(node: Node, folder: Folder, tmp_path: Path, new: Callable[[], Awaitable[None]]) -> None:
    """Change, add and break agents; `new` adds the agent `second`."""
    async with client(node) as caller:
        await answers(caller, "first", "old old")
        flag = tmp_path / "flag"
        long = await sent(caller, "first", str(flag))
        await caller.state(long, "TASK_STATE_WORKING")
        folder.say("new")
        await new()
        await answers(caller, "second", "new new")
        await answers(caller, "first", "new new")
        card = await caller.http.get(f"{node.base}/agents/second/.well-known/agent-card.json")
        assert card.json()["name"] == "second"
        folder.broken.write_text("def broken(:\n")
        await troubles(node, all_say("broken_of_test.py:1: SyntaxError: invalid syntax"))
        await answers(caller, "first", "new new")
        await answers(caller, "second", "new new")
        folder.broken.unlink()
        folder.say("newest")
        await answers(caller, "second", "newest newest")
        await troubles(node, lambda sentences: not any("A2A_AGENTS_DIR" in each for each in sentences))
        flag.touch()
        assert await text_of(caller, long) == "old old", "a run at work ends with the code that it began with"
        (folder.path / "second_of_test.py").unlink()
        await is_gone(caller, "second")


@pytest.mark.slow
async def test_a_server_reads_its_agents_again_without_a_restart(start: Start, folder: Folder, tmp_path: Path) -> None:
    node = await start(A2A_AGENTS_DIR=str(folder.path), **SHORT)

    async def add() -> None:
        folder.add("second", isolation="process")

    await goes_through_changes(node, folder, tmp_path, add)
    assert node.log.count("A2A_AGENTS_DIR was not read again") == 1
    assert await node.stop() == 0


@pytest.mark.long
async def test_a_web_process_and_a_worker_read_their_agents_again(plant: Plant, folder: Folder, tmp_path: Path) -> None:
    """The new agent has a queue of its own, which the worker did not know at its start."""
    web = await plant.web(A2A_AGENTS_DIR=str(folder.path))
    await plant.worker(A2A_AGENTS_DIR=str(folder.path))

    async def add() -> None:
        folder.add("second", queue="fresh")

    await goes_through_changes(web, folder, tmp_path, add)
    assert "the broker does not answer" not in web.log
