"""A server that is killed while a call of ADR-002 waits: the same call under the same id rejoins its one task."""

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.conftest import until
from tests.faults.conftest import SHORT, Start
from tests.faults.nodes import KEY
from tests.seeds.adr.client import Agent
from tests.support.servers import NO_TLS, PATIENCE

pytestmark = pytest.mark.fault


def calls_in(file: Path) -> list[list[str]]:
    """Return the task and the attempt of each call that the agent has written into the file."""
    lines = file.read_text("ascii").splitlines() if file.exists() else []
    return [line.split()[:2] for line in lines]


@pytest.mark.requirement("ADR-08")
async def test_a_call_rejoins_its_task_after_a_kill(start: Start, tmp_path: Path) -> None:
    node, file = await start(**SHORT), tmp_path / "calls"
    params = {"file": str(file), "seconds": 60}
    async with asyncio.timeout(PATIENCE * 2), httpx.AsyncClient(verify=NO_TLS) as http:
        agent = Agent(http=http, url=node.base, token=KEY)
        call = asyncio.create_task(agent.invoke("counted-thrice", params, request_id="the-call"))
        await asyncio.to_thread(until, lambda: calls_in(file), "a call of the agent")
        node.kill()
        with pytest.raises(httpx.TransportError):
            await call
        await node.start()
        result = await agent.invoke("counted-thrice", params, request_id="the-call")
        again = await agent.invoke("counted-thrice", params, request_id="the-call")
        streamed = [token async for token in agent.stream("counted-thrice", params, request_id="the-call")]
    assert (result["status"], result["text"]) == ("completed", "attempt 2 and ended")
    assert again == result
    assert "".join(streamed).endswith("attempt 2 and ended")
    (task,) = await node.lines("tasks", "list")
    assert task["id"] == result["task_id"]
    assert calls_in(file) == [[task["id"], "1"], [task["id"], "2"]]
