"""Our client, whose server is killed and comes back."""

import asyncio

import pytest

from a2a.client import Client, Update
from a2a.types import Message, Part, Role
from tests.faults.conftest import Start
from tests.faults.nodes import KEY

pytestmark = pytest.mark.fault
KILLS = 5


async def test_a_server_killed_five_times_is_followed_and_each_event_seen_once(start: Start) -> None:
    node = await start()
    message = Message(message_id="m", role=Role.USER, parts=(Part(data={"words": 20}),))
    updates: list[Update] = []
    async with Client(f"{node.base}/agents/persists/", token=KEY) as client:
        stream = client.stream(message)
        kills, heard = 0, 0
        async for update in stream:
            updates.append(update)
            heard += bool(update.text)
            if kills < KILLS and heard == 3:
                kills, heard = kills + 1, 0
                node.kill()
                restart = asyncio.create_task(node.start())
        await restart
        task = await client.get_task(updates[0].task_id)
    assert kills == KILLS
    assert [update.id for update in updates] == [str(number) for number in range(1, len(updates) + 1)]
    assert stream.task is not None
    assert (task.status, task.artifacts) == (stream.task.status, stream.task.artifacts)
    assert task.status.state == "completed"
