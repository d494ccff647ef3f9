"""Our client, whose server is killed and comes back."""

import pytest

from a2a.client import RPC, SOCKET, Client, Update
from a2a.types import Message, Part, Role
from tests.faults.conftest import Start
from tests.faults.nodes import KEY

pytestmark = [pytest.mark.fault, pytest.mark.slow]
KILLS = 5


@pytest.mark.parametrize("binding", [RPC, SOCKET])
async def test_a_server_killed_five_times_is_followed_and_each_event_seen_once(start: Start, binding: str) -> None:
    node = await start()
    message = Message(message_id="m", role=Role.USER, parts=(Part(data={"kills": KILLS}),))
    updates: list[Update] = []
    kills = 0
    async with Client(f"{node.base}/agents/persists/", token=KEY, bindings=(binding,)) as client:
        stream = client.stream(message)
        async for update in stream:
            updates.append(update)
            # The text begins with the number of the attempt, so this is the first word of the newest process.
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
