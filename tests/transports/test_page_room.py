"""Room for the pages of streams, in the account of their caller."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from django.http import StreamingHttpResponse
from django.test import AsyncRequestFactory

from a2a import sse
from a2a.agents import agent
from a2a.documents import EventDocument
from a2a.run import Run
from tasks_app.event_log.readers import Reader, readers
from tasks_app.limits.accounts import account
from tasks_app.off_loop import LARGE
from tasks_app.transports.enveloped import jsonrpc
from tests.conftest import PATIENCE, Person
from tests.operations.asking import sent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
SHARE = 100_000


@agent
async def writes_letters(run: Run) -> AsyncIterator[Any]:
    """Writes so many artifacts, of so many characters each, as its message says."""
    number, size = map(int, run.text.split())
    for place in range(number):
        yield run.artifact("x" * size, id=str(place))


async def written(person: Person, number: int, size: int) -> str:
    """Return the id of a task with so many artifacts of so many characters."""
    return (await asyncio.to_thread(sent, person, f"{number} {size}", "writes-letters")).id


@pytest.fixture(autouse=True)
def _share(settings: Any) -> None:
    settings.A2A_OWNER_BODY_BYTES, settings.A2A_PING_SECONDS = SHARE, 0.1


async def followed(person: Person, task_id: str) -> AsyncGenerator[bytes, None]:
    """Return the events of a task after its first, as the client of a subscription gets them."""
    wire = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task_id}}
    headers = {"Authorization": f"Bearer {person.key}", "Last-Event-ID": "1"}
    request = AsyncRequestFactory().post("/", json.dumps(wire), content_type="application/json", headers=headers)
    response = await jsonrpc(request)
    assert isinstance(response, StreamingHttpResponse)
    chunks: Any = aiter(response.streaming_content)  # type: ignore[arg-type]
    await anext(chunks)
    return chunks  # type: ignore[no-any-return]


def unsent(person: Person) -> int:
    return account.amounts["bodies", person.caller.owner_id]


async def test_a_large_page_waits_until_others_of_its_caller_are_sent(owner: Person, colleague: Person) -> None:
    mine, other = await written(owner, 1, 60_000), await written(colleague, 1, 60_000)
    first, second = await followed(owner, mine), await followed(owner, mine)
    page = await anext(first)
    assert len(page) > 60_000
    begun = await anext(second)
    assert len(begun) < LARGE, "the state before the artifact is small"
    assert [await anext(second) for _ in range(3)] == [sse.PING] * 3
    theirs = await followed(colleague, other)
    assert len(await anext(theirs)) > 60_000, "each owner has a share"
    assert [chunk async for chunk in first] == []
    async with asyncio.timeout(PATIENCE):
        seen = [chunk async for chunk in second if chunk != sse.PING]
    assert begun + b"".join(seen) == page
    assert [chunk async for chunk in theirs] == []
    assert unsent(owner) == unsent(colleague) == 0


async def test_a_page_counts_bytes_and_not_characters(owner: Person) -> None:
    task = await asyncio.to_thread(sent, owner, "\N{GRINNING FACE}" * 20_000, "echo")
    chunks = await followed(owner, task.id)
    page = await anext(chunks)
    assert SHARE > len(page) > 80_000
    assert len(page) - 100 < unsent(owner) < len(page)
    assert [chunk async for chunk in chunks] == []
    assert unsent(owner) == 0


async def test_small_events_go_on_in_small_pages_without_room(owner: Person) -> None:
    task = await written(owner, 10, 5_000)
    pages = [page async for page in await followed(owner, task)]
    holding = account.hold_body(owner.caller.owner_id, SHARE)
    parts = [page async for page in await followed(owner, task)]
    holding.release()
    assert b"".join(parts) == b"".join(pages)
    assert max(map(len, pages)) > 2 * LARGE > max(map(len, parts))


async def test_events_without_room_are_read_once(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks_app.transports.page_room.PAGE_SIZE", SHARE)
    read: list[int] = []
    page = Reader.page

    async def count(reader: Reader, most: int) -> list[EventDocument]:
        rows = await page(reader, most)
        read.append(sum(row.size for row in rows))
        return rows

    monkeypatch.setattr(Reader, "page", count)
    task = await written(owner, 40, 4_000)
    holding = account.hold_body(owner.caller.owner_id, SHARE)
    chunks = await followed(owner, task)
    parts = [await anext(chunks) for _ in range(5)]
    assert SHARE < sum(read) < SHARE + 7 * LARGE, "the first page, and then what is sent"
    holding.release()
    parts += [part async for part in chunks]
    assert sum(read) < 2 * SHARE + 7 * LARGE + 40 * 5_000
    assert max(map(len, parts[5:])) > 2 * LARGE > max(map(len, parts[:5])), "with room the pages are large again"
    assert unsent(owner) == 0


async def test_a_stream_that_waits_for_room_ends_when_the_process_goes_down(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await written(owner, 1, 60_000)
    chunks = await followed(owner, task)
    holding = account.hold_body(owner.caller.owner_id, SHARE)
    assert len(await anext(chunks)) < LARGE
    assert await anext(chunks) == sse.PING
    monkeypatch.setattr(readers, "draining", True)
    assert [chunk async for chunk in chunks][-1] == sse.DRAINING
    holding.release()
    assert unsent(owner) == 0
