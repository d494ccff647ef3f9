"""A call that waits and is broken off: faults, revoked keys, a process that goes down."""

import asyncio
import json
from typing import Any

import pytest
from django.db import OperationalError

from a2a.errors import TaskNotFound
from a2a.requests import CancelTask
from tasks_app.callers.access import revoke
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.event_log.readers import readers
from tasks_app.models import ApiKey, ExchangeBody, Task
from tasks_app.transports import call, waiting
from tasks_app.transports.waiting import Unfinished
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask
from tests.transports.waiting.calls import (
    OLD_REST,
    OLD_RPC,
    REST,
    RPC,
    Wire,
    answer_with,
    broken,
    post,
    recorded,
    stop,
    until,
    wires,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@wires
@pytest.mark.parametrize(("error", "code"), [(OperationalError("gone"), -38013), (ValueError("a bug"), -32603)])
def test_a_fault_behind_the_headers_leaves_the_answer_without_an_end(
    owner: Person, wire: Wire, error: Exception, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hurt() -> None:
        answer_with(monkeypatch, error)

    row = broken(owner, wire, hurt)
    assert row.code == code
    assert "eference" in ExchangeBody.objects.get(pk=row.pk).response


def test_a_call_that_waits_ends_when_its_key_is_revoked(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "KEY_SECONDS", 0.05)

    async def story() -> None:
        async with post(owner, RPC, RPC.call("go")) as late:
            assert await anext(late.chunks) == b" "
            await bridge.ask(Do(lambda: revoke(ApiKey.objects.all())))
            with pytest.raises(Unfinished):
                await late.rest()

    asyncio.run(story())
    row = recorded()
    assert (row.outcome, row.code) == ("broken", -38009)
    ask(owner, CancelTask(id=Task.objects.get().id))


def test_a_call_that_waits_ends_when_its_scope_is_taken_away(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "KEY_SECONDS", 0.05)

    async def story() -> None:
        async with post(owner, RPC, RPC.call("go")) as late:
            assert await anext(late.chunks) == b" "
            await bridge.ask(Do(lambda: ApiKey.objects.update(scopes="tasks:write weather")))
            assert await anext(late.chunks) == b" ", "the scope of the call is still there"
            await bridge.ask(Do(lambda: ApiKey.objects.update(scopes="tasks:read")))
            with pytest.raises(Unfinished):
                await late.rest()

    asyncio.run(story())
    row = recorded()
    assert (row.outcome, row.code) == ("broken", -38010)
    ask(owner, CancelTask(id=Task.objects.get().id))


def test_a_look_at_the_key_while_the_database_is_away_ends_no_wait(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "KEY_SECONDS", 0.05)
    looks: list[Any] = []

    async def look(*of: Any) -> None:
        looks.append(of)
        raise OperationalError

    monkeypatch.setattr(call, "check_again", look)

    async def story() -> bytes:
        async with post(owner, RPC, RPC.call("go")) as late:
            assert await anext(late.chunks) == b" "
            await until(lambda: len(looks) > 1)
            await stop(owner, await until(Task.objects.first))
            return await late.rest()

    assert RPC.task(asyncio.run(story()))["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize("wire", [RPC, OLD_RPC], ids=["1.0", "0.3"])
def test_an_error_that_has_no_status_of_its_own_is_an_answer(
    owner: Person, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> bytes:
        async with post(owner, wire, wire.call("go")) as late:
            assert await anext(late.chunks) == b" "
            answer_with(monkeypatch, TaskNotFound(taskId="forgotten"))
            await stop(owner, await until(Task.objects.first))
            return await late.rest()

    answer = json.loads(asyncio.run(story()))
    assert (answer["id"], answer["error"]["code"]) == (1, -32001)
    row = recorded()
    assert (row.outcome, row.code, row.http_status) == ("error", -32001, 200)


@pytest.mark.parametrize("wire", [REST, OLD_REST], ids=["1.0 over REST", "0.3 over REST"])
def test_over_rest_every_error_behind_the_headers_ends_the_connection(
    owner: Person, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forget() -> None:
        answer_with(monkeypatch, TaskNotFound(taskId="forgotten"))

    assert broken(owner, wire, forget).code == -32001


@wires
def test_a_process_that_goes_down_breaks_off_calls_whose_headers_are_out(owner: Person, wire: Wire) -> None:
    async def story() -> None:
        async with post(owner, wire, wire.call("go")) as late:
            assert await anext(late.chunks) == b" "
            readers.drain()
            with pytest.raises(Unfinished):
                await late.rest()

    asyncio.run(story())
    row = recorded()
    assert (row.outcome, row.code) == ("broken", -38013)
    readers.draining = False  # as in the next process
    ask(owner, CancelTask(id=Task.objects.get().id))


@wires
def test_a_process_that_goes_down_tells_a_call_without_headers_to_come_again(
    owner: Person, wire: Wire, settings: Any
) -> None:
    settings.A2A_PING_SECONDS = PATIENCE

    async def drain() -> None:
        await until(Task.objects.first)
        readers.drain()

    async def story() -> tuple[int, dict[str, str], bytes]:
        draining = asyncio.create_task(drain())
        async with post(owner, wire, wire.call("go")) as answer:
            await draining
            return answer.status, answer.headers, await answer.rest()

    status, headers, body = asyncio.run(story())
    assert (status, headers["retry-after"]) == (503, "2")
    assert json.loads(body)["error"]["code"] == (-38013 if wire.method else 503)
    row = recorded()
    assert (row.outcome, row.code, row.http_status) == ("error", -38013, 503)
    readers.draining = False  # as in the next process
    ask(owner, CancelTask(id=Task.objects.get().id))
