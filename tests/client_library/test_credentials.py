"""Credentials: sent with each call, renewed early, and asked for once however many calls wait."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import httpx
import orjson
import pytest

from a2a.client import ApiKey, Client, ClientCredentials, errors
from tests.client_library.faulty import Asked, FakeClock, Faulty, faulty, plain, result, rpc, task


def grants(seconds: float | None) -> Any:
    """Answer with a new token each time."""
    count = 0

    async def act(asked: Asked, writer: Any) -> None:
        nonlocal count
        count += 1
        lifetime = {} if seconds is None else {"expires_in": seconds}
        grant = {"access_token": f"token-{count}", "token_type": "bearer"} | lifetime
        await plain(200, orjson.dumps(grant))(asked, writer)

    return act


def provider(server: Faulty, fake: FakeClock) -> ClientCredentials:
    return ClientCredentials(server.url + "/token", "me", "s3cret", scopes=("a", "b"), clock=fake.clock)


@pytest.mark.requirement("ACP-20")
async def test_a_token_is_renewed_300_seconds_before_its_end() -> None:
    fake = FakeClock()
    async with (
        faulty(grants(3600)) as tokens,
        faulty(result(task())) as server,
        rpc(server, fake, credentials=provider(tokens, fake)) as client,
    ):
        for moment in (0, 10, 3299, 3300, 3301, 6599, 6600):
            fake.now = moment
            await client.get_task("t")
    sent = [asked.headers["authorization"] for asked in server.asked]
    assert sent == [f"Bearer token-{number}" for number in (1, 1, 1, 2, 2, 2, 3)]
    form = parse_qs(tokens.asked[0].body.decode())
    assert form == {"grant_type": ["client_credentials"], "scope": ["a b"]}
    assert tokens.asked[0].headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize(("seconds", "moments"), [(100.0, [0, 49, 50]), (None, [0, 3299, 3300])])
async def test_a_token_that_lives_shortly_or_has_no_end_is_renewed_in_time(
    seconds: float, moments: list[float]
) -> None:
    fake = FakeClock()
    async with faulty(grants(seconds)) as tokens:
        credentials, found = provider(tokens, fake), []
        for fake.now in moments:
            found.append((await credentials.headers())["Authorization"])
    assert found == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]


async def test_calls_that_need_a_token_at_once_wait_for_one_request() -> None:
    fake = FakeClock()
    async with (
        faulty(grants(3600)) as tokens,
        faulty(result(task())) as server,
        rpc(server, fake, credentials=provider(tokens, fake)) as client,
    ):
        await asyncio.gather(*(client.get_task("t") for _ in range(20)))
    assert len(tokens.asked) == 1


async def test_calls_that_wait_for_one_request_share_its_error() -> None:
    fake = FakeClock()
    async with (
        faulty(plain(503)) as tokens,
        faulty(result(task())) as server,
        rpc(server, fake, credentials=provider(tokens, fake)) as client,
    ):
        outcomes = await asyncio.gather(*(client.get_task("t") for _ in range(20)), return_exceptions=True)
    assert [(type(outcome), outcome.attempts) for outcome in outcomes] == [(errors.NoToken, 4)] * 20  # type: ignore[union-attr]
    assert (len(tokens.asked), len(server.asked)) == (4, 0)


class Vault:
    """Credentials of a user's own, whose source refuses them with an error that cannot be copied."""

    async def headers(self) -> dict[str, str]:
        await asyncio.sleep(0)
        httpx.Response(403, request=httpx.Request("GET", "http://vault/")).raise_for_status()
        return {}

    def refused(self, headers: Mapping[str, str]) -> None:
        """Do nothing."""


async def test_an_error_of_credentials_that_cannot_be_copied_reaches_all_calls() -> None:
    async with faulty(result(task())) as server, Client(server.url, credentials=Vault()) as client:
        outcomes = await asyncio.gather(*(client.get_task("t") for _ in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [httpx.HTTPStatusError] * 3


async def test_a_token_that_was_refused_is_not_used_again() -> None:
    fake = FakeClock()
    async with (
        faulty(grants(3600)) as tokens,
        faulty(plain(401), result(task())) as server,
        rpc(server, fake, credentials=provider(tokens, fake)) as client,
    ):
        with pytest.raises(errors.Unauthenticated):
            await client.get_task("t")
        await client.get_task("t")
    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer token-1", "Bearer token-2"]


async def test_a_late_refusal_of_a_former_token_keeps_the_new_one() -> None:
    fake, is_there, is_renewed = FakeClock(), asyncio.Event(), asyncio.Event()
    late = 2

    async def act(asked: Asked, writer: Any) -> None:
        nonlocal late
        if asked.headers["authorization"] != "Bearer token-1":
            return await result(task())(asked, writer)
        if late:
            late -= 1
            if not late:
                is_there.set()
            await is_renewed.wait()
        return await plain(401)(asked, writer)

    async with (
        faulty(grants(3600)) as tokens,
        faulty(act) as server,
        rpc(server, fake, credentials=provider(tokens, fake)) as client,
    ):
        slow = [asyncio.create_task(client.get_task("t")) for _ in range(2)]
        await is_there.wait()
        with pytest.raises(errors.Unauthenticated):
            await client.get_task("t")
        await client.get_task("t")
        is_renewed.set()
        outcomes = await asyncio.gather(*slow, return_exceptions=True)
        await client.get_task("t")
    assert [type(outcome) for outcome in outcomes] == [errors.Unauthenticated] * 2
    assert len(tokens.asked) == 2


async def test_a_token_endpoint_that_refuses_is_told_without_the_secret() -> None:
    fake = FakeClock()
    async with (
        faulty(plain(400, b'{"error":"invalid_client"}')) as tokens,
        faulty(result(task())) as server,
        rpc(server, fake, credentials=provider(tokens, fake)) as client,
    ):
        with pytest.raises(errors.NoToken, match="status 400") as caught:
            await client.get_task("t")
    assert "s3cret" not in str(caught.value)
    assert (len(tokens.asked), server.asked, caught.value.retryable) == (1, [], False)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error":"invalid_scope","error_description":"s3cret"}', "status 400: invalid_scope ("),
        (b'{"error":"s3cret"}', "status 400 ("),
        (b'{"error":7}', "status 400 ("),
        (b"<html>", "status 400 ("),
    ],
)
async def test_the_error_of_a_token_endpoint_is_told_by_its_name_alone(body: bytes, words: str) -> None:
    fake = FakeClock()
    async with (
        faulty(plain(400, body)) as tokens,
        faulty(result(task())) as server,
        rpc(server, fake, credentials=provider(tokens, fake)) as client,
    ):
        with pytest.raises(errors.NoToken) as caught:
            await client.get_task("t")
    assert words in str(caught.value)
    assert "s3cret" not in str(caught.value)


async def test_a_token_endpoint_that_is_busy_is_asked_again() -> None:
    fake = FakeClock()
    async with (
        faulty(plain(503), grants(3600)) as tokens,
        faulty(result(task())) as server,
        rpc(server, fake, credentials=provider(tokens, fake)) as client,
    ):
        await client.get_task("t")
    assert (fake.pauses, len(tokens.asked), len(server.asked)) == ([0.1], 2, 1)


async def test_a_key_goes_in_its_header() -> None:
    async with faulty(result(task())) as server, rpc(server, FakeClock(), credentials=ApiKey("k")) as client:
        await client.get_task("t")
    assert server.asked[0].headers["x-api-key"] == "k"
