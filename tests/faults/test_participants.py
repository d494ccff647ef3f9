"""Participants of a shared stream at several web processes: followers that do not read, webs that hear of each other
over Redis, and a web that dies."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
import redis as redis_client

from tasks_app.hints.redis_group import GROUP
from tests.faults.attackers import head
from tests.faults.clients import PATIENCE, closed
from tests.faults.conftest import Plant, Start
from tests.faults.nodes import KEY, Node

pytestmark = pytest.mark.fault
HINTS = f"taskdesk__group__{GROUP}"
POLL_SECONDS = "600"
"""Longer than any test, where nothing is to be left to the poll."""
BEHIND_TLS = {"A2A_TRUST_FORWARDED": "x-forwarded"}
FORWARDED = {"X-Forwarded-Proto": "https"}
"""The header of a proxy that ends TLS, without which ACP answers nothing."""
Chunk = dict[str, Any]


def wire(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


class Participant:
    """A client of one node, in the name of one account, with the chunks that it has seen."""

    def __init__(self, node: Node, key: str) -> None:
        self.node, self.key = node, key
        self.http = httpx.AsyncClient(
            base_url=node.base,
            headers={"Authorization": f"Bearer {key}", "Accept": "application/json"} | FORWARDED,
            timeout=PATIENCE,
        )
        self.seen: list[Chunk] = []

    async def ask(self, method: str, **params: Any) -> Any:
        """Return the result of a call."""
        answer = (await self.http.post("/jsonrpc", json=wire(method, **params))).json()
        assert "result" in answer, answer
        return answer["result"]

    async def say(self, stream_id: str, content: Any, kind: str = "TextPart") -> int:
        """Send a message, and return its place in the stream."""
        parts = [{"type": kind, "content": content}]
        sent = await self.ask("stream.message", streamId=stream_id, message={"role": "user", "parts": parts})
        return int(sent["sequence"])

    @asynccontextmanager
    async def following(self, stream_id: str, after: int = 0) -> AsyncIterator["Participant"]:
        """Follow the stream while the block lasts. The subscription has begun when the block does."""
        begun = asyncio.Event()
        reading = asyncio.ensure_future(self._follow(stream_id, after, begun))
        try:
            async with asyncio.timeout(PATIENCE):
                await begun.wait()
            yield self
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError, httpx.TransportError):
                await reading

    async def _follow(self, stream_id: str, after: int, begun: asyncio.Event) -> None:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        body = wire("stream.start", streamId=stream_id)
        async with self.http.stream("POST", "/jsonrpc", json=body, headers=headers) as response:
            async for line in response.aiter_lines():
                if line.startswith("data:"):
                    begun.set()
                    frame = json.loads(line[5:])
                    if "method" in frame:
                        self.seen.append(frame["params"])

    async def until(self, holds: Callable[[list[Chunk]], bool]) -> None:
        """Wait until the chunks that this participant has seen meet a condition."""
        async with asyncio.timeout(PATIENCE):
            while not holds(self.seen):  # noqa: ASYNC110  # another task reads
                await asyncio.sleep(0.02)


@asynccontextmanager
async def taking_part(*places: tuple[Node, str]) -> AsyncIterator[tuple[Participant, ...]]:
    """Give a participant for each node and key."""
    participants = tuple(Participant(node, key) for node, key in places)
    try:
        yield participants
    finally:
        for one in participants:
            await one.http.aclose()


def numbers(chunks: list[Chunk]) -> list[int]:
    return [chunk["sequence"] for chunk in chunks]


def has_answer(chunks: list[Chunk]) -> bool:
    """Return whether an agent has ended its answer."""
    return any(chunk["isLast"] and chunk["chunk"]["role"] == "agent" for chunk in chunks)


async def new_key(node: Node, principal: str) -> str:
    (created,) = await node.lines("a2a", "keys", "create", principal)
    return str(created["key"])


# ------------------------------------------------------------- slow followers

TEXTS, LENGTH = 24, 400_000
"""Messages of a stream, and the characters of each: together more than the kernel takes for a reader that waits."""


def subscription(node: Node, key: str, stream_id: str, unread: int) -> socket.socket:
    """Return a connection that follows the stream, on which about so many bytes can be received unread."""
    body = json.dumps(wire("stream.start", streamId=stream_id)).encode()
    fields = ["Content-Type: application/json", "Accept: text/event-stream", "Last-Event-ID: 0", "Connection: close"]
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, unread)
    connection.connect(("127.0.0.1", node.port))
    connection.sendall(head("/jsonrpc", *fields, f"Content-Length: {len(body)}", key=key) + body)
    connection.setblocking(False)
    return connection


async def drained(connection: socket.socket, at_most: int) -> int:
    """Read slowly until the server ends the connection, and return the bytes."""
    loop, taken = asyncio.get_running_loop(), 0
    with suppress(ConnectionError):
        while received := await loop.sock_recv(connection, at_most):
            taken += len(received)
            await asyncio.sleep(0.05)
    return taken


@pytest.mark.long
@pytest.mark.requirement("ACP-24")
async def test_a_follower_that_does_not_read_is_cut_and_costs_the_others_nothing(
    start: Start, record_property: Callable[[str, object], None]
) -> None:
    """A follower that reads slowly gets all. The slowest message is reported, and not asserted."""
    node = await start(A2A_WRITE_SECONDS="1.5")
    key, spans = await new_key(node, "colleague"), []
    async with taking_part((node, KEY), (node, key)) as (owner, colleague), AsyncExitStack() as stack:
        stream_id = (await owner.ask("stream.start", participants=["colleague"]))["stream"]["streamId"]
        silent = stack.enter_context(subscription(node, key, stream_id, 4_096))
        slow = stack.enter_context(subscription(node, KEY, stream_id, 65_536))
        reading = asyncio.ensure_future(drained(slow, 65_536))
        before = node.rss()
        async with owner.following(stream_id), colleague.following(stream_id):
            for number in range(TEXTS):
                since = time.perf_counter()
                await (owner, colleague)[number % 2].say(stream_id, "x" * LENGTH)
                spans.append(time.perf_counter() - since)
            for one in (owner, colleague):
                await one.until(lambda seen: len(seen) == TEXTS)
                assert numbers(one.seen) == list(range(1, TEXTS + 1))
                assert {chunk["chunk"]["agentId"] for chunk in one.seen} == {"developer", "colleague"}
            assert node.rss() - before < TEXTS * LENGTH * 8
            async with asyncio.timeout(PATIENCE):
                while not closed(silent):  # noqa: ASYNC110  # the server closes it
                    await asyncio.sleep(0.1)
        await owner.ask("stream.end", streamId=stream_id)
        async with asyncio.timeout(PATIENCE):
            assert await reading > TEXTS * LENGTH
            assert await drained(silent, 1_000_000) < TEXTS * LENGTH
    record_property("slowest message of 400 kB, in ms", round(1000 * max(spans)))


# --------------------------------------------------------- several processes


async def joined(plant: Plant, number: int) -> None:
    """Wait until so many processes hear each other's hints."""
    with redis_client.Redis.from_url(plant.redis.url) as asked:
        async with asyncio.timeout(PATIENCE):
            while asked.pubsub_numsub(HINTS)[0][1] < number:  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.02)


@pytest.mark.long
async def test_participants_at_two_webs_hear_each_other_over_redis(plant: Plant) -> None:
    """No look at the rows comes in time, so each chunk is heard of by a hint."""
    settings = {"A2A_POLL_SECONDS": POLL_SECONDS} | BEHIND_TLS
    first, second = await plant.web(**settings), await plant.web(**settings)
    await joined(plant, 2)
    key = await new_key(first, "colleague")
    async with taking_part((first, KEY), (second, key)) as (here, there):
        stream_id = (await here.ask("stream.start", participants=["colleague"]))["stream"]["streamId"]
        async with here.following(stream_id), there.following(stream_id):
            for number in range(1, 21):
                await (here, there)[number % 2].say(stream_id, f"message {number}")
                await asyncio.gather(*(one.until(lambda seen, n=number: len(seen) == n) for one in (here, there)))
            await asyncio.gather(*(one.say(stream_id, "at once") for _ in range(10) for one in (here, there)))
            await asyncio.gather(*(one.until(lambda seen: len(seen) == 40) for one in (here, there)))
    assert numbers(here.seen) == list(range(1, 41))
    assert here.seen == there.seen
    assert {chunk["chunk"]["agentId"] for chunk in here.seen} == {"caller", "colleague"}


async def test_a_stream_goes_on_at_the_other_web_when_one_dies_in_an_answer(plant: Plant) -> None:
    """The agent works in a worker, so the death of a web interrupts no answer: each chunk comes once."""
    first, second = await plant.web(**BEHIND_TLS), await plant.web(**BEHIND_TLS)
    await plant.worker()
    key = await new_key(first, "colleague")
    async with taking_part((first, KEY), (second, key), (second, KEY)) as (here, there, moved):
        stream_id = (await here.ask("stream.start", participants=["colleague", "story"]))["stream"]["streamId"]
        async with there.following(stream_id):
            async with here.following(stream_id):
                assert await here.say(stream_id, {"pause": 0.1, "words": 1}, "DataPart") == 1
                await here.until(lambda seen: len(seen) > 3)
                first.kill()
            await there.until(has_answer)
            async with moved.following(stream_id, after=here.seen[-1]["sequence"]):
                await moved.until(lambda seen: numbers(here.seen + seen) == numbers(there.seen))
                answered = len(there.seen)
                assert await moved.say(stream_id, {"pause": 0.01, "words": 1}, "DataPart") == answered + 1
                await there.until(lambda seen: has_answer(seen[answered:]))
                await moved.until(lambda seen: len(here.seen + seen) == len(there.seen))
    assert numbers(there.seen) == list(range(1, len(there.seen) + 1))
    assert here.seen + moved.seen == there.seen
    assert "system" not in {chunk["chunk"]["role"] for chunk in there.seen}, "no attempt was interrupted"
    tasks = await second.lines("tasks", "list")
    assert [task["state"] for task in tasks] == ["completed"] * 2
    assert [(await second.shown(task["id"]))["attempt"] for task in tasks] == [1, 1]
