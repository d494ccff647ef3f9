"""Calls that wait for long, over real connections: what their clients see of the wait, and of whatever ends it."""

import asyncio
import http.client
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from signal import SIGTERM
from typing import Any

import httpx
import orjson
import pytest

from tests.faults.clients import HEADERS, PATIENCE, Client, client, envelope, inputs
from tests.faults.conftest import SHORT, Plant, Start
from tests.faults.outages import outage

pytestmark = pytest.mark.fault
SPACES = {"A2A_PING_SECONDS": "0.2", "A2A_GRACE_SECONDS": "0.5"}


class Waited:
    """An answer under way; its spaces are counted."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.chunks = response.aiter_raw()
        self.body = b""

    async def space(self) -> None:
        """Wait for a space."""
        async with asyncio.timeout(PATIENCE):
            chunk = await anext(self.chunks)
        assert chunk.strip() == b"", chunk
        self.body += chunk

    async def rest(self) -> dict[str, Any]:
        """Return the task. Raises TransportError when the answer has no end."""
        async with asyncio.timeout(PATIENCE):
            async for chunk in self.chunks:
                self.body += chunk
        return orjson.loads(self.body)["result"]["task"]


async def called(waited: Waited, notes: Path) -> None:
    """Wait until the agent has been called, while the caller waits."""
    async with asyncio.timeout(PATIENCE):
        while not notes.exists():  # noqa: ASYNC240
            await waited.space()


@asynccontextmanager
async def waiting(caller: Client, agent: str, message: dict[str, Any]) -> AsyncIterator[Waited]:
    """Give a send that has waited long enough for its first space."""
    body = envelope("SendMessage", {"message": message})
    async with caller.http.stream("POST", caller.url(agent), content=body) as response:
        assert response.status_code == 200
        waited = Waited(response)
        await waited.space()
        yield waited


async def again(caller: Client, agent: str, message: dict[str, Any]) -> dict[str, Any]:
    """Return the task, by the same message once more."""
    return (await caller.result("SendMessage", {"message": message}, agent=agent))["task"]


def text_of(task: dict[str, Any]) -> str:
    return "".join(part["text"] for artifact in task["artifacts"] for part in artifact["parts"])


def calls(file: Path) -> list[str]:
    """Return the attempts of the agent, in their order."""
    return [line.split()[1] for line in file.read_text(encoding="ascii").splitlines()]


async def test_a_killed_process_leaves_half_an_answer_and_the_same_message_finds_the_task(
    start: Start, tmp_path: Path
) -> None:
    node, notes = await start(**SHORT, **SPACES), tmp_path / "notes"
    message = inputs(file=str(notes), seconds=60)
    async with client(node) as caller, waiting(caller, "counted-thrice", message) as waited:
        await called(waited, notes)
        node.kill()
        with pytest.raises(httpx.TransportError):
            await waited.rest()
    await node.start()
    async with client(node) as caller:
        task = await again(caller, "counted-thrice", message)
    assert (task["status"]["state"], text_of(task)) == ("TASK_STATE_COMPLETED", "attempt 2 and ended")
    assert calls(notes) == ["1", "2"]
    assert len(await node.lines("tasks", "list")) == 1
    first, *_ = reversed(await node.lines("exchanges", "list", "--method", "SendMessage"))
    assert first["outcome"] == "", "nobody could record how it ended"


async def test_a_stop_breaks_a_wait_off_and_the_same_message_finds_the_task(start: Start, tmp_path: Path) -> None:
    node, notes = await start(**SHORT, **SPACES), tmp_path / "notes"
    message = inputs(file=str(notes), seconds=60)
    async with client(node) as caller, waiting(caller, "counted-thrice", message) as waited:
        await called(waited, notes)
        node.tell(SIGTERM)
        with pytest.raises(httpx.RemoteProtocolError):
            await waited.rest()
    assert await node.ended() == 0
    assert "Traceback" not in node.log
    assert "ASGI callable" not in node.log
    (exchange,) = await node.lines("exchanges", "list", "--outcome", "broken")
    assert (exchange["code"], exchange["http_status"]) == (-38013, 200)
    await node.start()
    async with client(node) as caller:
        task = await again(caller, "counted-thrice", message)
    assert text_of(task) == "attempt 2 and ended"
    assert calls(notes) == ["1", "2"]


async def test_a_database_that_is_away_in_the_wait_costs_at_most_a_repeat(
    start: Start, postgres_server: str, postgres: str, tmp_path: Path
) -> None:
    node, notes = await start(DATABASE_URL=postgres, **SPACES), tmp_path / "notes"
    message = inputs(file=str(notes), seconds=1)
    async with client(node) as caller:
        async with waiting(caller, "counted", message) as waited:
            with outage(postgres_server, postgres):
                # The agent ends meanwhile.
                for _ in range(8):
                    await waited.space()
            try:
                task = await waited.rest()
            except httpx.TransportError:
                task = await again(caller, "counted", message)
        assert (task["status"]["state"], text_of(task)) == ("TASK_STATE_COMPLETED", "attempt 1 and ended")
        assert await again(caller, "counted", message) == task
    assert calls(notes) == ["1"]


async def test_a_wait_outlives_the_worker_of_its_task(plant: Plant, tmp_path: Path) -> None:
    web, worker, notes = await plant.web(**SPACES), await plant.worker(), tmp_path / "notes"
    async with client(web) as caller, waiting(caller, "counted-thrice", inputs(file=str(notes), seconds=60)) as waited:
        await called(waited, notes)
        worker.kill()
        await worker.start()
        task = await waited.rest()
    assert text_of(task) == "attempt 2 and ended"
    assert calls(notes) == ["1", "2"]


async def test_no_limit_of_a_connection_ends_a_wait_and_further_calls_are_served(start: Start) -> None:
    limits = ("WRITE", "HEADER", "BODY", "KEEP_ALIVE", "STREAM")
    node = await start(**SPACES, **{f"A2A_{name}_SECONDS": "5" for name in limits})
    with closing(http.client.HTTPConnection("127.0.0.1", node.port, timeout=PATIENCE)) as connection:
        for seconds in (6.0, 0.0, 0.5):
            body = envelope("SendMessage", {"message": inputs(seconds=seconds)})
            await asyncio.to_thread(connection.request, "POST", "/agents/once/jsonrpc", body, HEADERS)
            answer = await asyncio.to_thread(connection.getresponse)
            assert (answer.status, answer.version) == (200, 11)
            assert text_of(orjson.loads(await asyncio.to_thread(answer.read))["result"]["task"]) == "begun and ended"
            connection.auto_open = False  # type: ignore[assignment]  # a new connection would be another one


async def test_an_idle_connection_stays_open_for_as_long_as_the_setting_says(start: Start) -> None:
    node = await start(A2A_KEEP_ALIVE_SECONDS="6")
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    with closing(writer):
        since = time.monotonic()
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            await reader.read()
        assert time.monotonic() - since >= 6
