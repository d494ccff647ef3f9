"""Stored budgets among processes: a budget covers as many calls as it is for, and a killed worker forgets no cost."""

import asyncio
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.clients import client, inputs, message
from tests.faults.conftest import Start
from tests.faults.nodes import ISOLATED, Node

pytestmark = pytest.mark.fault
CALLS, COVERED = 50, 10


async def set_budget(node: Node) -> None:
    """Give the tenant of the caller a budget for ten tasks of 1 USD."""
    await node.lines("a2a", "budgets", "set", str(COVERED))


async def budget_of(node: Node) -> dict[str, Any]:
    return (await node.lines("a2a", "budgets", "show"))[0]


async def race(nodes: tuple[Node, Node]) -> None:
    """Send to both processes at once, to a quick agent and then to a queued one."""
    await set_budget(nodes[0])
    for agent, parts, reserved, spent in (
        ("pays-at-once", {"text": "x"}, "0.00", "10.00"),
        ("pays", {"data": {}}, "10.00", "0.00"),
    ):
        async with client(nodes[0]) as one, client(nodes[1]) as other:
            calls = [
                caller.reply(
                    "SendMessage",
                    {"message": message(parts), "configuration": {"returnImmediately": True}},
                    agent=agent,
                )
                for caller in (one, other) * (CALLS // 2)
            ]
            replies = await asyncio.gather(*calls)
        codes = Counter(reply.get("error", {}).get("code") for reply in replies)
        assert codes == {None: COVERED, -38006: CALLS - COVERED}, replies
        budget = await budget_of(nodes[0])
        assert (budget["reserved"], budget["spent"], budget["left"]) == (reserved, spent, "0.00")
        await nodes[0].lines("a2a", "budgets", "reset")
    assert "Traceback" not in nodes[0].log + nodes[1].log


async def test_a_budget_for_ten_admits_ten_of_fifty_in_two_processes(start: Start, postgres: str) -> None:
    await race((await start(DATABASE_URL=postgres), await start("serve", DATABASE_URL=postgres)))


async def test_a_budget_for_ten_admits_ten_of_fifty_in_two_processes_on_a_file(start: Start, tmp_path: Path) -> None:
    first = await start()
    (tmp_path / "other").mkdir()
    shutil.copy(first.folder / "secret.key", tmp_path / "other")
    file = f"sqlite:///{first.folder}/taskdesk.sqlite3"
    await race((first, await start("serve", "other", DATABASE_URL=file)))


async def test_a_killed_worker_forgets_no_cost_and_doubles_none(start: Start) -> None:
    node = await start()
    await set_budget(node)
    async with client(node) as caller:
        params = {"message": inputs(seconds=60.0), "configuration": {"returnImmediately": True}}
        task_id = (await caller.result("SendMessage", params, agent="pays"))["task"]["id"]
        async with asyncio.timeout(60):
            while (await node.lines("tasks", "show", task_id))[0]["spent"] == "0.00":
                pass  # The command takes a while.
        node.kill()
        budget = await budget_of(node)
        assert (budget["reserved"], budget["spent"]) == ("1.00", "0.00")
        await node.start()
        task = await caller.state(task_id, "TASK_STATE_COMPLETED")
    assert "0.5 spent" in str(task["artifacts"])
    budget = await budget_of(node)
    assert (budget["reserved"], budget["spent"], budget["left"]) == ("0.00", "0.50", "9.50")


async def test_an_agent_in_a_process_of_its_own_reports_its_cost_and_is_stopped_at_its_budget(start: Start) -> None:
    node = await start(**ISOLATED)
    await set_budget(node)
    async with client(node) as caller:
        caller.http.headers["X-Budget-USD"] = "0.9"
        task = (await caller.result("SendMessage", {"message": message({"text": "x"})}, agent="pays-apart"))["task"]
        assert "0.4375 spent" in str(task["artifacts"])
        assert "and more" in str(task["artifacts"])
        caller.http.headers["X-Budget-USD"] = "0.5"
        task = (await caller.result("SendMessage", {"message": message({"text": "x"})}, agent="pays-apart"))["task"]
        assert "it has cost 0.6875 USD, and may cost 0.50 USD" in str(task["status"])
    budget = await budget_of(node)
    assert (budget["reserved"], budget["spent"]) == ("0.00", "1.375")
