"""A verification zone and an execution zone as processes, with a queue between them, and what is asked of them."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.faults.clients import PATIENCE, Client, client, ended, state
from tests.faults.conftest import NEW_KEY, SHARED, SHORT, Start, shell
from tests.faults.nodes import KEY, Execution, Node

AGENTS = {"A2A_AGENT_MODULES": "tests.faults.zone_agents", "A2A_DEFAULT_AGENT": "answers"}
ANSWER = "attempt {} and ended"
SECRET = "a secret of both zones"


class Broker(Protocol):
    """A server that keeps the queue."""

    def start(self) -> None: ...

    def kill(self) -> None: ...


class Zones(NamedTuple):
    """A verification zone and an execution zone on data of their own, with a queue between them."""

    verification: Node
    execution: Execution


async def start_zones(url: str, start: Start, nodes: list[Node], folder: Path, migrated_file: Path) -> Zones:
    """Start two zones with the queue of this address between them."""
    queue = {"A2A_ZONE_QUEUE": url, "A2A_ZONE_SECRET": SECRET}
    execution = Execution(folder / "execution", **SHARED, **SHORT, **AGENTS, **queue)
    nodes.append(execution)
    shutil.copy(migrated_file, execution.folder)
    await asyncio.to_thread(shell, execution.folder, NEW_KEY, **execution.settings)
    calls = {"A2A_EXECUTION": "queue", "A2A_EXECUTION_KEY": KEY, "A2A_DEFAULT_AGENT": "execution"}
    verification, _ = await asyncio.gather(start(folder="verification", **SHORT, **calls, **queue), execution.start())
    return Zones(verification, execution)


async def asked(caller: Client, text: str) -> str:
    """Return the task of a question, which is not waited for."""
    message = {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]}
    params = {"message": message, "configuration": {"returnImmediately": True}}
    return str((await caller.result("SendMessage", params))["task"]["id"])


def answer(task: dict[str, Any]) -> str:
    return "".join(part["text"] for artifact in task["artifacts"] for part in artifact["parts"])


def rows(node: Node, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(node.folder / "taskdesk.sqlite3", timeout=PATIENCE)) as connection:
        return list(connection.execute(query))


async def outlive(broker: Broker, zones: Zones) -> None:
    """Ask before, during and after an absence of the broker; each question is answered once."""
    async with client(zones.verification) as caller:
        first = await ended(caller, await asked(caller, "before"))
        broker.kill()
        task_id = await asked(caller, "meanwhile")
        await zones.verification.logs("the execution zone gave no answer to execute_task")
        await zones.execution.logs("trying again in")
        broker.start()
        tasks = [first, await ended(caller, task_id, 2 * PATIENCE), await ended(caller, await asked(caller, "after"))]
    assert [(state(task), answer(task)) for task in tasks] == [("TASK_STATE_COMPLETED", ANSWER.format(1))] * 3
    assert rows(zones.execution, "select state from tasks_app_task") == [("completed",)] * 3
