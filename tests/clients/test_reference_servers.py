"""Our client against servers of the official SDK, over each binding in each version that they speak."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import pytest

from a2a.client import Client, errors
from a2a.client.updates import text_of
from a2a.types import Task
from tests.client_library.faulty import listening
from tests.clients.environments import reference_servers
from tests.support.servers import free_port

pytestmark = pytest.mark.clients

SPOKEN = [
    ("1.3.0", "1.0", "JSONRPC"),
    ("1.3.0", "1.0", "HTTP+JSON"),
    ("1.3.0", "0.3", "JSONRPC"),
    ("1.3.0", "0.3", "HTTP+JSON"),
    ("0.3.26", "0.3", "JSONRPC"),
    ("0.3.26", "0.3", "HTTP+JSON"),
]
DOUBLES = "0.3.26"
"""It writes each event into its task once for each subscriber that there ever was."""
NUMBERS = 20
COUNTED = "".join(f"{number} " for number in range(NUMBERS))


class Cutter:
    """A proxy that breaks connections off behind so many events: a number for each stream that comes by."""

    def __init__(self, port: int) -> None:
        self.port = port
        """The port of the server."""
        self.cuts: list[int] = []

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        out = asyncio.create_task(self._forward(reader, back))
        try:
            await self._answer(there, writer)
        finally:
            out.cancel()
            back.close()
            with suppress(ConnectionError):
                await back.wait_closed()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        events, cut = 0, None
        while data := await reader.read(65_536):
            if cut is None and b"text/event-stream" in data and self.cuts:
                cut = self.cuts.pop(0)
            writer.write(data)
            await writer.drain()
            events += data.count(b"data: ")
            if cut is not None and events >= cut:
                return


class Reference(NamedTuple):
    """A server behind a proxy, and how it is spoken to."""

    sdk: str
    cutter: Cutter
    url: str
    port: int
    version: str
    binding: str

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with (
            listening(self.cutter.connect, self.port),
            Client(self.url, versions=(self.version,), bindings=(self.binding,)) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def ports(pytestconfig: pytest.Config) -> Iterator[dict[str, tuple[int, int]]]:
    """The ports of each server and of its proxy."""
    assert pytestconfig.cache
    found = {sdk: (free_port(), free_port()) for sdk in ("1.3.0", "0.3.26")}
    places = {sdk: (port, f"http://127.0.0.1:{outer}") for sdk, (port, outer) in found.items()}
    with reference_servers(pytestconfig.cache.mkdir("clients"), places):
        yield found


@pytest.fixture(params=SPOKEN, ids="-".join)
def reference(request: pytest.FixtureRequest, ports: dict[str, tuple[int, int]]) -> Reference:
    sdk, version, binding = request.param
    port, outer = ports[sdk]
    return Reference(sdk, Cutter(port), f"http://127.0.0.1:{outer}", outer, version, binding)


async def test_a_message_is_answered_and_its_task_read(reference: Reference) -> None:
    async with reference.client() as client:
        assert (await client.card()).name == "reference"
        task = await client.send("hello there")
        assert isinstance(task, Task)
        assert (task.status.state, text_of(task)) == ("completed", "hello there")
        assert await client.get_task(task.id) == task
        if reference.version == "1.0":
            assert task.id in {one.id for one in (await client.list_tasks()).tasks}


async def test_a_question_is_answered_and_a_task_canceled(reference: Reference) -> None:
    async with reference.client() as client:
        asked = await client.send("ask")
        assert isinstance(asked, Task)
        assert asked.status.state == "input_required"
        answered = await client.send("fine", task_id=asked.id)
        assert isinstance(answered, Task)
        assert (answered.id, answered.status.state, text_of(answered)) == (asked.id, "completed", "fine")
        waiting = await client.send("wait", return_immediately=True)
        assert isinstance(waiting, Task)
        assert (await client.cancel_task(waiting.id)).status.state == "canceled"
        with pytest.raises(errors.TaskNotCancelable):
            await client.cancel_task(waiting.id)


async def test_a_stream_gives_each_piece_once(reference: Reference) -> None:
    async with reference.client() as client:
        updates = [update async for update in client.stream(f"count {NUMBERS}")]
    assert "".join(update.text for update in updates) == COUNTED
    assert updates[-1].state == "completed"


async def test_refusals_have_their_reasons(reference: Reference) -> None:
    async with reference.client() as client:
        with pytest.raises(errors.TaskNotFound):
            await client.get_task("nothing")
        task = await client.send("hello")
        assert isinstance(task, Task)
        # A server refuses an ended task as unsupported. 0.3.26 calls it a wrong field.
        with pytest.raises((errors.UnsupportedOperation, errors.InvalidParams)):
            await client.send("more", task_id=task.id)


async def test_a_webhook_is_registered_and_read(reference: Reference) -> None:
    async with reference.client() as client:
        task = await client.send("ask")
        assert isinstance(task, Task)
        made = await client.create_push_config(task.id, "https://example.com/hook")
        assert (made.task_id, made.url) == (task.id, "https://example.com/hook")
        if made.id:
            assert (await client.get_push_config(task.id, made.id)).url == made.url


async def test_a_stream_that_is_cut_again_and_again_ends_with_the_whole_task(reference: Reference) -> None:
    reference.cutter.cuts[:] = [4, 3, 5]
    async with reference.client() as client:
        stream = client.stream(f"count {NUMBERS}")
        updates = [update async for update in stream]
        task = await client.get_task(updates[0].task_id)
    assert reference.cutter.cuts == []
    assert updates[-1].state == "completed"
    assert stream.task is not None
    assert text_of(stream.task) == text_of(task)
    assert text_of(task) == COUNTED or reference.sdk == DOUBLES
