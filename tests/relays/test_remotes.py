"""The clients of relays: one for each loop, and none for a loop that has ended."""

import asyncio
import gc
import weakref
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tasks_app.relays import remotes
from tasks_app.relays.credentials import StoredCredentials
from tasks_app.relays.options import RelayOptions

WEATHER = RelayOptions(name="weather", url="https://weather.example.com")


@pytest.fixture(autouse=True)
def without_database(monkeypatch: pytest.MonkeyPatch) -> None:
    store(monkeypatch, None)


def store(monkeypatch: pytest.MonkeyPatch, credentials: StoredCredentials | None) -> None:
    async def read(relay: str) -> StoredCredentials | None:
        await asyncio.sleep(0)
        return credentials

    monkeypatch.setattr(remotes, "_stored_credentials_of", read)


async def _open() -> tuple[list[Any], "weakref.ref[asyncio.AbstractEventLoop]"]:
    clients = await asyncio.gather(*(remotes.client_of(WEATHER) for _ in range(3)))
    return clients, weakref.ref(asyncio.get_running_loop())


def test_runs_that_begin_together_share_a_client() -> None:
    clients, _ = asyncio.run(_open())
    assert len(set(clients)) == 1


def test_clients_of_a_loop_that_has_ended_are_forgotten() -> None:
    ended = [asyncio.run(_open())[1] for _ in range(5)]
    gc.collect()
    assert [loop() for loop in ended[:-1]] == [None] * 4


def test_a_token_outlasts_the_clients_until_other_credentials_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[httpx.Request]()
    first = StoredCredentials(kind="oauth", secret="s", token_url="https://auth.example.com/token", client_id="desk")

    def grant(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"access_token": f"token-{len(asked)}", "expires_in": 3600})

    async def token() -> str:
        credentials: Any = await remotes.client_of(WEATHER)
        return str((await credentials.headers())["Authorization"])

    async def story() -> list[str]:
        store(monkeypatch, first)
        tokens = [await token() for _ in range(3)]
        store(monkeypatch, replace(first, secret="another"))
        return [*tokens, await token()]

    monkeypatch.setattr(remotes, "guarded_http", lambda: httpx.AsyncClient(transport=httpx.MockTransport(grant)))
    monkeypatch.setattr(remotes, "open_client", lambda relay, http, credentials: credentials)
    monkeypatch.setattr(remotes, "CLIENT_SECONDS", -1.0)  # Each call opens a new client.
    assert asyncio.run(story()) == ["Bearer token-1"] * 3 + ["Bearer token-2"]
