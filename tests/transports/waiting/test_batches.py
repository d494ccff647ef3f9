"""A batch in which a call waits."""

import asyncio
import json
from typing import Any

import pytest
from django.db import OperationalError

from a2a.requests import CancelTask
from tasks_app.event_log.readers import readers
from tasks_app.exchanges.recording import recorder
from tasks_app.limits.accounts import account
from tasks_app.models import Exchange, Task
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask
from tests.support.accounts import holdings
from tests.support.agents import GEO
from tests.transports.waiting.calls import OLD_RPC, RPC, answer_with, post, stop, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def test_a_batch_with_a_call_that_waits_is_spaces_and_then_the_replies_in_order(owner: Person) -> None:
    calls = [RPC.call("go", "a"), RPC.call("go", None), {"jsonrpc": "2.0", "id": "b", "method": "GetTask"}]

    async def story() -> bytes:
        async with post(owner, RPC, [*calls, OLD_RPC.call("go", "c")], **{"X-Request-ID": "mine"}) as late:
            assert (late.status, late.headers["x-request-id"]) == (200, "mine")
            assert late.headers["content-type"] == "application/json"
            assert [await anext(late.chunks) for _ in range(3)] == [b" "] * 3
            for task in await until(lambda: tasks if len(tasks := list(Task.objects.all())) == 3 else None):
                await stop(owner, task)
            return await late.rest()

    first, second, third = json.loads(asyncio.run(story()))
    assert (first["id"], first["result"]["task"]["status"]["state"]) == ("a", "TASK_STATE_COMPLETED")
    assert (second["id"], second["error"]["code"]) == ("b", -32602)
    assert (third["id"], third["result"]["status"]["state"]) == ("c", "completed")


def test_the_headers_of_a_batch_that_waits_name_the_extensions_of_its_members(owner: Person, settings: Any) -> None:
    settings.A2A_PING_SECONDS = 1  # By then its members are begun.
    asks = RPC.call("where?", "a")
    asks["params"]["metadata"] = {"agent": "demanding"}
    waits = RPC.call("go", "b")
    waits["params"]["metadata"] = {"agent": "gate"}
    root = RPC._replace(path="/jsonrpc")

    async def story() -> dict[str, str]:
        async with post(owner, root, [asks, waits], **{"A2A-Extensions": GEO, "A2A-Version": "1.0"}) as late:
            assert await anext(late.chunks) == b" "
            await stop(owner, await until(Task.objects.filter(agent="gate").first))
            await late.rest()
            return late.headers

    assert asyncio.run(story())["a2a-extensions"] == GEO


def test_a_fault_of_one_member_is_its_error_and_the_others_are_answered(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [RPC.call("go", "a"), {"jsonrpc": "2.0", "id": "b", "method": "GetTask", "params": {"id": "none"}}]

    async def story() -> bytes:
        async with post(owner, RPC, calls) as late:
            assert await anext(late.chunks) == b" "
            answer_with(monkeypatch, OperationalError("gone"))
            await stop(owner, await until(Task.objects.first))
            return await late.rest()

    first, second = json.loads(asyncio.run(story()))
    assert (first["id"], first["error"]["code"]) == ("a", -38013)
    assert (second["id"], second["error"]["code"]) == ("b", -32001)
    recorder.drain(PATIENCE)
    row = Exchange.objects.get(rpc_id="a")
    assert (row.outcome, row.code, row.http_status) == ("error", -38013, 200)


def test_a_client_that_leaves_a_batch_ends_its_waits(owner: Person) -> None:
    async def story() -> None:
        async with post(owner, RPC, [RPC.call("go", "a"), RPC.call("go", "b")]) as late:
            assert await anext(late.chunks) == b" "
            await until(lambda: holdings(account) == [("waits", owner.caller.owner_id, 2)])
        await until(lambda: not holdings(account) and not readers.waiting)

    asyncio.run(story())
    recorder.drain(PATIENCE)
    assert [row.outcome for row in Exchange.objects.all()] == ["left", "left"]
    for task in Task.objects.all():
        ask(owner, CancelTask(id=task.id))
