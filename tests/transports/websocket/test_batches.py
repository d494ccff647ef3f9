"""Batches on a connection: how many of their calls may be in flight, and what counts in the account."""

import json
from typing import Any

import pytest

from tasks_app.limits.accounts import account
from tests.conftest import Person
from tests.support.accounts import holdings
from tests.support.gates import gate_before_calls
from tests.transports.websocket.door import call, next_frame
from tests.transports.websocket.serving import connected, eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


async def test_a_large_batch_counts_until_no_member_is_in_memory(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = gate_before_calls(monkeypatch)
    batch = json.dumps([json.loads(call(number, "GetTask", {"id": "x" * 10_000})) for number in range(2)])
    async with connected(owner) as (client, _):
        await client.send(batch)
        await eventually(lambda: gate.begun == 2)
        assert ("bodies", owner.caller.owner_id, len(batch)) in holdings(account)
        gate.set()
        assert len(await next_frame(client)) == 2
        await eventually(lambda: {kind for kind, _, _ in holdings(account)} == {"sockets"})


async def test_a_batch_beside_others_is_refused_if_they_have_too_many_calls(
    owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_SOCKET_CALLS = 5
    gate = gate_before_calls(monkeypatch)

    def batch(number: int) -> str:
        return json.dumps([json.loads(call(f"{number}-{place}", "GetTask", {"id": "none"})) for place in range(number)])

    async with connected(owner) as (client, _):
        await client.send(batch(3))
        await client.send(batch(2))
        await client.send(batch(1))
        assert (await next_frame(client))["error"]["code"] == -38008
        gate.set()
        assert sorted([len(await next_frame(client)) for _ in range(2)]) == [2, 3]
        await client.send(batch(6))
        assert len(await next_frame(client)) == 6, "alone it may have more"
