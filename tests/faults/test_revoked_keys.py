"""A key that is revoked while it is in use: its calls, its waiting call and its webhooks end."""

import asyncio

import httpx
import pytest

from tests.faults.clients import PATIENCE, Client, inputs
from tests.faults.conftest import Start
from tests.support.receiver import receiver

pytestmark = pytest.mark.fault


async def test_a_revoked_key_hears_nothing_more(start: Start) -> None:
    node = await start(A2A_PING_SECONDS="0.5", A2A_SWEEP_SECONDS="0.5")
    (made,) = await node.lines("a2a", "keys", "create", "mallory")
    headers = {"Authorization": f"Bearer {made['key']}", "Content-Type": "application/json"}
    with receiver() as there:
        async with httpx.AsyncClient(headers=headers, timeout=60) as http:
            caller = Client(node, http)
            webhook = {"url": f"{there.url}/hook", "id": "mine"}
            configuration = {"returnImmediately": True, "taskPushNotificationConfig": webhook}
            params = {"message": inputs(words=3_000, pause=0.1), "configuration": configuration}
            task_id = (await caller.result("SendMessage", params, agent="talks"))["task"]["id"]
            await asyncio.to_thread(there.wait, 2)
            wait = {"message": inputs(seconds=300)}
            waiting = asyncio.create_task(caller.reply("SendMessage", wait, agent="sleeper"))
            await asyncio.sleep(1)
            (revoked,) = await node.lines("a2a", "keys", "revoke", str(made["id"]))
            assert (revoked["webhooks"], revoked["revoked_at"] is None) == (1, False)
            with pytest.raises(httpx.RemoteProtocolError):  # The answer is cut off.
                await waiting
            heard = len(there.got)
            await asyncio.sleep(1)
            seen = len(there.got)
        (row,) = await node.lines("deliveries", "webhooks")
        left = await node.lines("deliveries", "list", "--state", "waiting")
        async with asyncio.timeout(PATIENCE):  # The task goes on, and nobody is told.
            while (await node.shown(task_id))["last_seq"] <= seen + 5:  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.1)
    assert (row["state"], row["reason"]) == ("disabled", "the key that registered it was revoked")
    assert (row["url"], left) == (f"{there.url}/", [])
    assert heard == seen == len(there.got)
