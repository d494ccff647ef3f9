"""The clients of relays: one for each loop, and none for a loop that has ended."""

import asyncio
import gc
import weakref
from typing import Any

import httpx
import pytest

from tasks_app.relays import remotes
from tasks_app.relays.options import RelayOptions

WEATHER = RelayOptions(name="weather", url="https://weather.example.com")


@pytest.fixture(autouse=True)
def without_database(monkeypatch: pytest.MonkeyPatch) -> None:
    async def credentials_of(relay: str, http: httpx.AsyncClient) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(remotes, "credentials_of", credentials_of)


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
