"""The places of downloads in a process: how many there are, how many one address may have, and when they are free."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import RequestFactory

from tasks_app.asgi.handler import LeanHandler
from tasks_app.limits.accounts import account
from tasks_app.transports import files as door
from tests.conftest import PATIENCE, Person
from tests.support.chapters.files import files_of
from tests.support.doors import StockDoor
from tests.transports.files.links import BIG, call, fetched

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]
Sending = Callable[[dict[str, Any]], Awaitable[None]]


@pytest.fixture
def path(service: None, owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Give the path of a link to a file that is sent in many chunks."""
    settings.STORAGES |= {
        "files": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}}
    }
    settings.A2A_TRUSTED_PROXIES = ["127.0.0.0/8"]
    monkeypatch.setattr(door, "CHUNK", 1_000)
    headers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
    _, body = asyncio.run(fetched("POST", "/jsonrpc", json.dumps(call(BIG)).encode(), **headers))
    place = urlsplit(files_of(json.loads(body)["result"]["task"])[0]["url"])
    return f"{place.path}?{place.query}"


def run(path: str, most: int, settings: Any, story: Callable[[AsyncExitStack, Any], Awaitable[None]]) -> None:
    """Run a story that begins downloads by the last part of an address, and gets the status of each."""
    settings.A2A_DOWNLOADS = most

    async def play() -> None:
        async with AsyncExitStack() as stack:

            async def begin(address: int) -> int:
                asked = StockDoor().ask("GET", path, b"", {"X-Forwarded-For": f"203.0.113.{address}"})
                reply = await stack.enter_async_context(asked)
                if reply.status == 200:
                    assert await anext(reply.chunks) == BIG[:1_000]
                else:
                    assert reply.headers["retry-after"] == "5"
                return reply.status

            await story(stack, begin)

    asyncio.run(play())


def test_a_download_too_many_is_refused_until_another_ends(path: str, settings: Any) -> None:
    async def story(stack: AsyncExitStack, begin: Any) -> None:
        assert [await begin(address) for address in (1, 2, 3)] == [200, 200, 503]
        await stack.aclose()
        assert await begin(3) == 200

    run(path, 2, settings, story)


def test_one_address_has_half_of_the_downloads_at_most(path: str, settings: Any) -> None:
    async def story(stack: AsyncExitStack, begin: Any) -> None:
        assert [await begin(address) for address in (1, 1, 1, 2, 2)] == [200, 200, 429, 200, 200]
        await stack.aclose()
        assert [await begin(1) for _ in range(3)] == [200, 200, 429]

    run(path, 5, settings, story)


def test_two_addresses_leave_downloads_to_others(path: str, settings: Any) -> None:
    async def story(stack: AsyncExitStack, begin: Any) -> None:
        assert [await begin(1) for _ in range(4)] == [200] * 4
        assert [await begin(2) for _ in range(3)] == [200, 200, 503]
        assert [await begin(address) for address in (3, 3, 4, 5)] == [200, 503, 200, 503]

    run(path, 8, settings, story)


def test_an_address_has_one_download_where_there_is_no_more(path: str, settings: Any) -> None:
    async def story(stack: AsyncExitStack, begin: Any) -> None:
        assert [await begin(address) for address in (1, 2)] == [200, 503]

    run(path, 1, settings, story)


def test_a_download_gives_its_place_back_when_its_response_is_closed(path: str) -> None:
    request = RequestFactory().get(path)

    async def story() -> None:
        response = await door.download(request, *path.partition("?")[0].split("/")[2:])
        assert account.totals["downloads"] == 1
        response.close()
        assert account.totals["downloads"] == 0

    asyncio.run(story())


@pytest.mark.parametrize("leaves", ["at once", "later", "never"])
def test_the_lean_handler_closes_a_download_however_it_ends(path: str, leaves: str) -> None:
    closed = asyncio.run(_closed(path, leaves))
    assert closed == [0]
    assert account.totals["downloads"] == 0


async def _closed(path: str, leaves: str) -> list[int]:
    """Return the number of downloads that remain after each closing of a response."""
    place, _, query = path.partition("?")
    scope = {"type": "http", "method": "GET", "path": place, "query_string": query.encode(), "headers": []}
    gone, began, closings = asyncio.Event(), asyncio.Event(), list[int]()

    async def receive() -> dict[str, Any]:
        if not began.is_set():
            began.set()
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if leaves == "at once" or (leaves == "later" and message.get("body")):
            gone.set()
            raise OSError("the client has left")

    def note() -> None:
        closings.append(account.totals["downloads"])

    handler = LeanHandler()
    original = handler._middleware_chain

    async def watched(request: Any) -> Any:
        response = await original(request)
        assert account.totals["downloads"] == 1
        response._resource_closers.append(note)
        return response

    handler._middleware_chain = watched
    async with asyncio.timeout(PATIENCE):
        await handler(scope, receive, send)
    return closings
