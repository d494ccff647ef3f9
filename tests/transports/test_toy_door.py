"""A door that is not HTTP, in one file: a queue in memory. It builds a Call, sends the Reply, and passes the story."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import pytest

from a2a import languages
from a2a.sse import last_seen
from tasks_app.callers.schemes import evidence_in
from tasks_app.models import Exchange
from tasks_app.transports.call import Call
from tasks_app.transports.receiving import Batch, receive
from tests.conftest import Person
from tests.support.chapters import CHAPTERS
from tests.support.doors import Events, Reply, StockDoor
from tests.support.rpc_speakers import NewSpeaker, OldSpeaker
from tests.support.speaker import Speaker
from tests.support.story import Chapter, cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]


class Parcel(NamedTuple):
    """A call on its way, and the queue for what comes back."""

    path: str
    body: bytes
    headers: dict[str, str]
    back: "asyncio.Queue[Any]"
    left: asyncio.Event


# ------------------------------------------------------------ the server's side


async def serve(inbox: "asyncio.Queue[Parcel]") -> None:
    working = set()
    while True:
        work = asyncio.ensure_future(answer(await inbox.get()))
        working.add(work)
        work.add_done_callback(working.discard)


def call_of(parcel: Parcel) -> Call:
    metadata = {name.lower(): value for name, value in parcel.headers.items()}
    endpoint = next(
        endpoint for endpoint in languages.ALL.endpoints.values() if parcel.path.strip("/") in endpoint.paths
    )
    return Call(
        endpoint=endpoint,
        door="queue",
        evidence=evidence_in({"HTTP_AUTHORIZATION": metadata.get("authorization", "")}),
        metadata=lambda name: metadata.get(name.lower()),
        address=lambda: "http://testserver",
        version=metadata.get("a2a-version") or None,
        after=partial(last_seen, metadata.get("last-event-id")),
        departure=left(parcel),
    )


def left(parcel: Parcel) -> Any:
    async def wait() -> None:
        await parcel.left.wait()

    return wait


async def answer(parcel: Parcel) -> None:
    reply = await receive(call_of(parcel), parcel.body)
    if isinstance(reply, Batch):
        payload: bytes | None = await reply.payload()
        await parcel.back.put((200, reply.media, reply.headers, None if reply.silent else payload))
        return
    media = reply.wrapping.media
    if reply.stream is None:
        payload = await reply.late.payload(early=False) if reply.late else reply.payload
        await parcel.back.put((reply.status, media, reply.headers, payload))
        if reply.holding:
            reply.holding.release()
        return
    await parcel.back.put((200, media, reply.headers, parcel.back))
    leaving = asyncio.ensure_future(parcel.left.wait())
    sending = asyncio.ensure_future(send(reply.stream.pages(), parcel.back))
    await asyncio.wait({leaving, sending}, return_when=asyncio.FIRST_COMPLETED)
    sending.cancel()
    leaving.cancel()


async def send(pages: Any, back: "asyncio.Queue[Any]") -> None:
    async with aclosing(pages):
        async for page in pages:
            for event in page:
                await back.put(event)
    await back.put(None)


# ------------------------------------------------------------ the client's side


class Stream(NamedTuple):
    """A reply that is a stream."""

    status: int
    headers: dict[str, str]
    chunks: AsyncIterator[bytes]
    back: "asyncio.Queue[Any]"


class QueueDoor:
    """The door, with its server in the loop of the test."""

    announces_ends = True

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[Parcel] | None = None

    @asynccontextmanager
    async def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> AsyncIterator[Any]:
        if method == "GET":  # Files are fetched over HTTP, whichever door their links came through.
            async with StockDoor().ask(method, path, body, headers) as reply:
                yield reply
            return
        if self.inbox is None:
            self.inbox = asyncio.Queue()
            self.server = asyncio.ensure_future(serve(self.inbox))
        parcel = Parcel(path, body, headers, asyncio.Queue(), asyncio.Event())
        await self.inbox.put(parcel)
        status, media, told, payload = await parcel.back.get()
        told = {name.lower(): value for name, value in told.items()} | {"content-type": media}
        try:
            if payload is parcel.back:
                yield Stream(status, told, nothing(), parcel.back)
            else:
                yield Reply(status if payload is not None else 204, told, nothing(payload or b""))
        finally:
            parcel.left.set()

    def events(self, reply: Any) -> Events | None:
        return taken(reply.back) if isinstance(reply, Stream) else None


async def nothing(content: bytes = b"") -> AsyncIterator[bytes]:
    yield content


async def taken(back: "asyncio.Queue[Any]") -> Events:
    while (event := await back.get()) is not None:
        yield event


SPEAKERS: dict[str, tuple[type[Speaker], str | None]] = {"1.0": (NewSpeaker, "1.0"), "0.3": (OldSpeaker, None)}


async def told(chapter: Awaitable[None], door: QueueDoor) -> None:
    try:
        await chapter
    finally:
        if door.inbox is not None:
            door.server.cancel()


@pytest.mark.parametrize(
    ("speaker", "chapter"),
    [
        pytest.param(speaker, chapter, id=f"{chapter.name}-{name}")
        for name, speaker in SPEAKERS.items()
        for chapter in CHAPTERS
        if chapter.needs in {"", *speaker[0].traits}
    ],
)
def test_the_story_over_a_queue(
    owner: Person, stranger: Person, speaker: tuple[type[Speaker], str | None], chapter: Chapter
) -> None:
    door = QueueDoor()
    asyncio.run(told(chapter.tell(cast(*speaker, door, owner.key, stranger.key)), door))  # type: ignore[arg-type]
    assert set(Exchange.objects.values_list("door", "envelope", "http_status")) <= {("queue", "jsonrpc", None)}
