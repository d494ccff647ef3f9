"""Messages to tasks that are at work in another process: each is heard by its agent, or refused."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.clients import PATIENCE, Client, client, message
from tests.faults.conftest import Plant

pytestmark = pytest.mark.fault


def follow_up(task_id: str, text: str) -> dict[str, Any]:
    return {"message": message({"text": text}, taskId=task_id), "configuration": {"returnImmediately": True}}


def calls(file: Path) -> Counter[str]:
    """Count how often each task was given to its agent."""
    return Counter(line.split()[0] for line in file.read_text(encoding="ascii").splitlines())


def recorded(folder: Path, task_id: str) -> set[str]:
    """Return the lines that the agent of a task wrote down."""
    return {line for file in folder.glob(f"{task_id}-*") for line in file.read_text(encoding="utf-8").splitlines()}


def texts_of(task: dict[str, Any]) -> list[str]:
    """Return the texts of the user in a task."""
    texts = [part.get("text") for each in task["history"] if each["role"] == "ROLE_USER" for part in each["parts"]]
    return [text for text in texts if text]


async def test_an_agent_that_never_looks_is_called_again_with_what_came_meanwhile(plant: Plant, tmp_path: Path) -> None:
    web = await plant.web()
    await plant.worker(NOTES=str(tmp_path))
    async with client(web) as caller:
        sent = [await caller.send("deaf") for _ in range(10)]
        for task_id in sent:
            await caller.state(task_id, "TASK_STATE_WORKING")
        for place, task_id in enumerate(sent):
            await caller.result("SendMessage", follow_up(task_id, f"word-{place}"))
        (tmp_path / "open").touch()
        ended = [await caller.state(task_id, "TASK_STATE_COMPLETED") for task_id in sent]
    assert calls(tmp_path / "calls") == dict.fromkeys(sent, 2)
    for place, task in enumerate(ended):
        assert task["artifacts"][-1]["parts"][-1]["text"].endswith(f"word-{place}")


async def test_no_message_that_races_the_end_of_a_run_is_swallowed(plant: Plant, tmp_path: Path) -> None:
    web, other = await plant.web(), await plant.web()
    await plant.worker(NOTES=str(tmp_path))
    async with client(web) as here, client(other) as there:
        task_id = await here.send("records")
        await here.state(task_id, "TASK_STATE_WORKING")

        await here.result("SendMessage", follow_up(task_id, "word-first"))

        async def race(caller: Client, place: int) -> tuple[str, dict[str, Any]]:
            await asyncio.sleep(place * 0.02)  # before its end, about it, and after it
            return f"word-{place}", await caller.reply("SendMessage", follow_up(task_id, f"word-{place}"))

        (tmp_path / "open").touch()
        replies = await asyncio.gather(*(race((here, there)[place % 2], place) for place in range(32)))
        task = await here.state(task_id, "TASK_STATE_COMPLETED", 2 * PATIENCE)
    accepted = ["word-first", *(word for word, reply in replies if "result" in reply)]
    refusals = [reply["error"] for _, reply in replies if "error" in reply]
    assert all("the task has ended" in str(error) for error in refusals), refusals
    assert sorted(texts_of(task)) == sorted(accepted), "each is in the log once"
    assert set(accepted) <= recorded(tmp_path, task_id)
