"""Answers that become large when they are decompressed, or that never end: each caller gives up within its limits."""

import gzip
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import orjson
import pytest

from a2a.client import bodies as decompressing
from a2a.failures import Retry
from tasks_app.agents import llm
from tasks_app.callers import issuer_keys
from tasks_app.callers.issuer_keys import FetchFailed
from tasks_app.outbound import bodies, dialling
from tasks_app.slack.web_api import SlackAway, WebApi
from tasks_app.zones import https
from tasks_app.zones.carriers import NoAnswer
from tasks_app.zones.https import Https
from tests.client_library.faulty import faulty, plain
from tests.client_library.hostile import HEAD, written

Call = Callable[[str], Awaitable[Any]]


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setattr(https, "most_bytes", lambda: 300_000)
    return lambda url: Https(url, "").carry(b"{}")


@pytest.fixture
def slack(settings: Any) -> Call:
    async def call(url: str) -> Any:
        settings.A2A_SLACK_API = url + "/"
        return await WebApi().call("token", "auth.test", {})

    return call


@pytest.fixture
def model(settings: Any) -> Call:
    async def call(url: str) -> Any:
        settings.LLM_BASE_URL, settings.LLM_MODEL = url, "m"
        return [text async for text in llm.answer([])]

    return call


@pytest.fixture
def issuer() -> Call:
    return issuer_keys._get


CALLERS = [("issuer", FetchFailed), ("zone", NoAnswer), ("slack", SlackAway)]
LAYERS = [("gzip", 1), ("gzip, gzip", 2), ("br", 0)]


def bomb(layers: int) -> bytes:
    body = b" " * 5_000_000
    for _ in range(layers):
        body = gzip.compress(body)
    return body


@pytest.mark.parametrize(("name", "error"), CALLERS)
@pytest.mark.parametrize(("coding", "layers"), LAYERS)
async def test_a_small_answer_never_becomes_a_large_one(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, name: str, error: Any, coding: str, layers: int
) -> None:
    largest = 0
    inflate = decompressing._inflate

    def measured(*arguments: Any) -> bytes:
        nonlocal largest
        piece = inflate(*arguments)
        largest = max(largest, len(piece))
        return piece

    monkeypatch.setattr(decompressing, "_inflate", measured)
    call: Call = request.getfixturevalue(name)
    async with faulty(plain(200, bomb(layers)[:200_000], Content_Encoding=coding)) as server:
        with pytest.raises(error):
            await call(server.url)
        assert [asked.headers["accept-encoding"] for asked in server.asked] == ["identity"]
    assert largest <= decompressing._PIECE
    assert bool(largest) == (layers == 1)


@pytest.mark.parametrize(("coding", "layers"), LAYERS[1:])
async def test_a_model_that_compresses_its_answer_again_breaks_off(model: Call, coding: str, layers: int) -> None:
    async with faulty(plain(200, bomb(layers)[:200_000], "text/event-stream", Content_Encoding=coding)) as server:
        with pytest.raises(Retry, match="broke"):
            await model(server.url)


@pytest.mark.parametrize("name", ["issuer", "slack"])
async def test_an_answer_that_is_stored_compressed_is_read(request: pytest.FixtureRequest, name: str) -> None:
    wire = {"ok": True, "text": "x" * 100_000}
    async with faulty(plain(200, gzip.compress(orjson.dumps(wire)), Content_Encoding="gzip")) as server:
        assert await request.getfixturevalue(name)(server.url) == wire


async def test_a_zone_that_answers_byte_by_byte_is_given_up(zone: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(https, "SECONDS", 0.2)
    async with faulty(written(f"{HEAD}application/json", b" ", slowly=True)) as server:
        with pytest.raises(NoAnswer, match=r"no whole answer within 0\.2 s"):
            await zone(server.url)


async def test_a_body_that_is_not_what_its_header_says_is_an_error_of_http() -> None:
    act = plain(200, b"{}", Content_Encoding="gzip")
    async with (
        faulty(act) as server,
        dialling.client(seconds=2) as client,
        client.stream("GET", server.url) as answer,
    ):
        with pytest.raises(httpx.DecodingError, match="not compressed as its header says"):
            await bodies.read_body(answer, 100)
