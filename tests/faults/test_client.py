"""Our client and its command, whose server is killed and comes back."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from typing import Any

import orjson
import pytest

from a2a.client import Client, Update
from a2a.client.console import TOKEN
from a2a.types import Message, Part, Role, Task
from tests.faults.conftest import Start
from tests.faults.nodes import KEY, ROOT

pytestmark = [pytest.mark.fault, pytest.mark.slow]
KILLS = 5
MESSAGE = Message(message_id="m", role=Role.USER, parts=(Part(data={"kills": KILLS}),))


async def test_a_server_killed_five_times_is_followed_and_each_event_seen_once(start: Start) -> None:
    node = await start()
    updates: list[Update] = []
    kills = 0
    async with Client(f"{node.base}/agents/persists/", token=KEY) as client:
        stream = client.stream(MESSAGE)
        async for update in stream:
            updates.append(update)
            # The first word of an attempt: its process is the one that was started last.
            if kills < KILLS and update.text.startswith(f"{kills + 1}."):
                kills += 1
                node.kill()
                await node.start()
        task = await client.get_task(updates[0].task_id)
    assert [update.id for update in updates] == [str(number) for number in range(1, len(updates) + 1)]
    assert stream.task is not None
    assert (task.status, task.artifacts) == (stream.task.status, stream.task.artifacts)
    assert task.status.state == "completed"
    assert kills == KILLS


async def test_one_tail_over_websocket_prints_each_event_once_while_its_server_is_killed_five_times(
    start: Start,
) -> None:
    node = await start()
    url = f"{node.base}/agents/persists/"
    async with Client(url, token=KEY) as client:
        task = await client.send(MESSAGE, return_immediately=True)
    assert isinstance(task, Task)
    program = [sys.executable, "-c", "from config.entry import main; main()"]
    line = ["tail", url, task.id, "--after", "1", "--json", "--binding", "WEBSOCKET"]
    process = await asyncio.create_subprocess_exec(
        *program, *line, cwd=ROOT, env=os.environ | {TOKEN: KEY}, stdout=PIPE
    )
    events: list[dict[str, Any]] = []
    kills = 0
    try:
        assert process.stdout
        async for text in process.stdout:
            events.append(orjson.loads(text))
            if kills < KILLS and words_of(events[-1]).startswith(f"{kills + 1}."):
                kills += 1
                node.kill()
                await node.start()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
    assert [event["id"] for event in events] == [str(number) for number in range(1, len(events) + 1)]
    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert kills == KILLS


def words_of(event: dict[str, Any]) -> str:
    """Return the text that an event adds to an artifact."""
    artifact = event.get("artifactUpdate", {}).get("artifact", {"parts": []})
    return "".join(part["text"] for part in artifact["parts"])
