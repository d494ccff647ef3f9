"""A client of VAPORA and a server that is killed: its tasks survive, and it calls again until the server is back."""

import asyncio

import httpx
import pytest

from tests.faults.clients import HEADERS
from tests.faults.conftest import Start
from tests.seeds.vapora.client import VaporaClient
from tests.support.servers import NO_TLS, PATIENCE

pytestmark = pytest.mark.fault


@pytest.mark.requirement("VAPORA-08", "VAPORA-12")
async def test_a_task_of_vapora_survives_a_killed_server(start: Start) -> None:
    node = await start()

    async def restart(seconds: float) -> None:
        """Start the server in the first pause of the client."""
        pauses.append(seconds)
        if len(pauses) == 1:
            await node.start()

    pauses: list[float] = []
    async with httpx.AsyncClient(headers=HEADERS, verify=NO_TLS) as http:
        client = VaporaClient(http, node.base, restart)
        done = await client.send("hello", "m-1", metadata={"agent": "echo"})
        begun = await client.send("hello", "m-2", metadata={"agent": "story"}, configuration={"blocking": False})
        node.kill()
        assert await client.get(done["id"]) == done
        assert pauses, "the client called again"
        assert (await client.send("hello", "m-1", metadata={"agent": "echo"}))["id"] == done["id"]
        async with asyncio.timeout(PATIENCE * 2):
            while True:
                if (await client.get(begun["id"]))["status"]["state"] == "completed":
                    break
                await asyncio.sleep(0.1)
        assert (await http.get(f"{node.base}/health")).json()["status"] in {"healthy", "degraded"}
