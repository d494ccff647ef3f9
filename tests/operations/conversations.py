"""Conversations of moderator tests, short: streams, messages, and agents that answer until nothing is open."""

import asyncio
from collections.abc import Callable
from typing import Any

import orjson

from a2a.requests import SendToSharedStream, StartSharedStream
from a2a.shared_streams import ChunkRole
from a2a.types import Part
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.models import AgentAnswer, Chunk
from tasks_app.operations import Context, perform
from tasks_app.operations.moderator import Moderator
from tests.conftest import SLACK, Person


async def ask(who: Person, request: Any) -> Any:
    return await perform(request, Context(caller=who.caller))


async def start(who: Person, *participants: str) -> str:
    stream = await ask(who, StartSharedStream(participants=participants))
    return str(stream.id)


async def say(who: Person, stream_id: str, text: str = "hello") -> None:
    await ask(who, SendToSharedStream(stream_id=stream_id, parts=(Part(text=text),), role=ChunkRole.USER))


async def settled(moderator: Moderator) -> None:
    """Follow the answers that are due until each of them is over or waits."""
    moderator.look_at = 0
    await moderator.begin_turns()
    while moderator.turns:
        await asyncio.gather(*moderator.turns)
        await moderator.begin_turns()


async def answered(moderator: Moderator | None = None) -> None:
    """Follow answers until none is open. They become due again by looks, because no moderator hears hints here."""
    moderator = moderator or Moderator()
    async with asyncio.timeout(20 + SLACK):
        while await read(AgentAnswer.objects.filter(due_at__isnull=False).exists):
            await settled(moderator)


async def read(function: Callable[[], Any]) -> Any:
    return await bridge.ask(DoSlowly(function))


def chunks(stream_id: str) -> list[tuple[str, str, bool]]:
    """Return the author, the text and the mark of the end of each chunk."""
    rows = list(Chunk.objects.filter(stream_id=stream_id).order_by("seq"))
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1)), "the numbers have gaps"
    return [
        (row.author, "".join(part.get("text", "?") for part in orjson.loads(row.parts)), row.is_last) for row in rows
    ]


def talk(story: Callable[[], Any]) -> Any:
    return asyncio.run(story())


def waiting() -> list[bool]:
    """Return for each open answer whether it waits."""
    rows = AgentAnswer.objects.filter(due_at__isnull=False).order_by("pk")
    return [since is not None for since in rows.values_list("waits_since", flat=True)]
