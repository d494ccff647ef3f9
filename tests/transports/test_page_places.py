"""How many pages are made at the same time, and what becomes of the others."""

import asyncio
from typing import Any

import httpx
import pytest

from tasks_app.asgi import places
from tasks_app.asgi.application import Http
from tasks_app.asgi.places import OF_ADDRESS, PAGES
from tests.conftest import PATIENCE


class Pages:
    """A handler whose pages are made when they may, and then sent to a reader."""

    def __init__(self) -> None:
        self.begun = self.now = self.most = 0
        self.may_end = asyncio.Event()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.begun, self.now = self.begun + 1, self.now + 1
        self.most = max(self.most, self.now)
        await self.may_end.wait()
        self.now -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a page"})


@pytest.fixture
def pages() -> Pages:
    return Pages()


async def ask(http: Http, path: str = "/admin/login/", address: str = "203.0.113.1") -> httpx.Response:
    transport = httpx.ASGITransport(app=http, client=(address, 1234))
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        return await client.get(path)


async def begin(pages: Pages, number: int) -> None:
    """Wait until so many pages have begun, and let others begin that may."""
    async with asyncio.timeout(PATIENCE):
        while pages.begun < number:  # noqa: ASYNC110  # no Event there
            await asyncio.sleep(0.001)
    for _ in range(100):
        await asyncio.sleep(0)


async def test_a_few_pages_are_made_at_once_and_all_are_answered(pages: Pages) -> None:
    http = Http(pages, pages)
    asked = [asyncio.ensure_future(ask(http)) for _ in range(3 * PAGES)]
    await begin(pages, PAGES)
    assert pages.begun == PAGES
    pages.may_end.set()
    assert [answer.status_code for answer in await asyncio.gather(*asked)] == [200] * 3 * PAGES
    assert pages.most == PAGES


async def test_pages_beyond_those_that_may_wait_are_refused(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "WAITING", 2)
    http = Http(pages, pages)
    asked = [asyncio.ensure_future(ask(http)) for _ in range(PAGES + 2)]
    await begin(pages, PAGES)
    refusal = await ask(http)
    assert (refusal.status_code, refusal.headers["retry-after"]) == (503, "1")
    asked.pop().cancel()
    asked.append(asyncio.ensure_future(ask(http)))
    pages.may_end.set()
    assert [answer.status_code for answer in await asyncio.gather(*asked)] == [200] * (PAGES + 2)


async def test_pages_of_one_address_leave_room_for_those_of_others(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    http = Http(pages, pages)
    monkeypatch.setattr(http.places, "most_of_address", 2)
    asked = [asyncio.ensure_future(ask(http)) for _ in range(PAGES + 2)]
    await begin(pages, PAGES)
    assert (await ask(http)).status_code == 503
    asked.append(asyncio.ensure_future(ask(http, address="203.0.113.2")))
    pages.may_end.set()
    assert [answer.status_code for answer in await asyncio.gather(*asked)] == [200] * (PAGES + 3)
    assert (await ask(http)).status_code == 200


async def test_a_page_that_waits_for_too_long_is_refused(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "WAITING_SECONDS", 0.0)
    http = Http(pages, pages)
    asked = [asyncio.ensure_future(ask(http)) for _ in range(PAGES)]
    await begin(pages, PAGES)
    refusal = await ask(http)
    assert (refusal.status_code, refusal.headers["retry-after"]) == (503, "1")
    assert not http.places.waiting
    pages.may_end.set()
    assert [answer.status_code for answer in await asyncio.gather(*asked, ask(http))] == [200] * (PAGES + 1)


async def test_the_operators_api_is_refused_with_a_problem(pages: Pages, settings: Any) -> None:
    settings.A2A_BODY_BYTES = 1_000
    transport = httpx.ASGITransport(app=Http(pages, pages), client=("203.0.113.1", 1234))
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        answers = {path: await client.post(path, content=b" " * 1_001) for path in ("/api/v1/keys/", "/admin/login/")}
    media, sentence = "application/problem+json", "he body must have 1000 bytes at most"
    assert {answer.status_code for answer in answers.values()} == {413}
    assert answers["/api/v1/keys/"].headers["content-type"] == media
    problem = answers["/api/v1/keys/"].json()
    assert (problem["status"], problem["detail"], problem["instance"]) == (413, f"T{sentence}.", "/api/v1/keys/")
    assert "A2A_BODY_BYTES" in problem["advice"]
    assert answers["/admin/login/"].text == f"t{sentence}\n"


async def test_a_client_that_leaves_while_its_page_waits_leaves_its_place_to_others(pages: Pages) -> None:
    http, leaves, sent = Http(pages, pages), asyncio.Event(), []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def wait_for_page() -> None:
        parts = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> dict[str, Any]:
            if parts:
                return parts.pop()
            await leaves.wait()
            return {"type": "http.disconnect"}

        scope = {"type": "http", "method": "GET", "path": "/admin/login/", "headers": [], "client": ("203.0.113.1", 1)}
        await http(scope, receive, send)

    asked = [asyncio.ensure_future(ask(http)) for _ in range(PAGES)]
    await begin(pages, PAGES)
    left = [asyncio.ensure_future(wait_for_page()) for _ in range(OF_ADDRESS)]
    await begin(pages, PAGES)
    assert http.places.waiting.total() == OF_ADDRESS
    assert (await ask(http)).status_code == 503
    leaves.set()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*left)
    assert (sent, pages.begun, http.places.waiting.total()) == ([], PAGES, 0)
    asked.append(asyncio.ensure_future(ask(http)))
    pages.may_end.set()
    assert [answer.status_code for answer in await asyncio.gather(*asked)] == [200] * (PAGES + 1)


async def test_tokens_are_given_while_all_other_pages_are_slow(pages: Pages) -> None:
    http = Http(pages, pages)
    asked = [asyncio.ensure_future(ask(http)) for _ in range(2 * PAGES)]
    await begin(pages, PAGES)
    asked.append(asyncio.ensure_future(ask(http, "/oauth2/token")))
    await begin(pages, PAGES + 1)
    pages.may_end.set()
    assert [answer.status_code for answer in await asyncio.gather(*asked)] == [200] * (2 * PAGES + 1)


async def test_static_files_are_sent_while_pages_are_slow_and_many_of_one_address(pages: Pages) -> None:
    http = Http(pages, pages)
    asked = [asyncio.ensure_future(ask(http)) for _ in range(2 * PAGES)]
    await begin(pages, PAGES)
    asked += [asyncio.ensure_future(ask(http, "/static/admin/css/base.css")) for _ in range(PAGES + OF_ADDRESS + 1)]
    await begin(pages, 2 * PAGES)
    pages.may_end.set()
    assert [answer.status_code for answer in await asyncio.gather(*asked)] == [200] * (3 * PAGES + OF_ADDRESS + 1)


async def test_a_page_that_fails_or_whose_client_leaves_gives_its_place_back(pages: Pages) -> None:
    async def fail(*_: Any) -> None:
        raise RuntimeError

    failing = Http(fail, fail)
    for _ in range(2 * PAGES):
        with pytest.raises(RuntimeError):
            await ask(failing)
    http = Http(pages, pages)
    asked = [asyncio.ensure_future(ask(http)) for _ in range(2 * PAGES)]
    await begin(pages, PAGES)
    for each in asked:
        each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    asked = [asyncio.ensure_future(ask(http)) for _ in range(PAGES)]
    await begin(pages, 2 * PAGES)
    pages.may_end.set()
    assert [answer.status_code for answer in await asyncio.gather(*asked)] == [200] * PAGES


async def test_a_reader_who_is_slow_takes_no_place(pages: Pages) -> None:
    http, reads, sent = Http(pages, pages), asyncio.Event(), []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        await reads.wait()

    pages.may_end.set()
    scope = {"type": "http", "method": "GET", "path": "/admin/login/", "headers": []}
    slow = [asyncio.ensure_future(http(scope, receive, send)) for _ in range(PAGES)]
    await begin(pages, PAGES)
    assert len(sent) == PAGES
    assert (await ask(http)).status_code == 200
    reads.set()
    await asyncio.gather(*slow)
