"""A call that waits: headers, spaces, and then the answer."""

import asyncio
import gc
import json
from typing import Any

import pytest

from a2a.requests import CancelTask
from tasks_app.event_log.readers import readers
from tasks_app.exchanges.recording import recorder
from tasks_app.limits.accounts import account
from tasks_app.models import Exchange, ExchangeBody, Task
from tasks_app.transports import waiting
from tasks_app.transports.streams import Stream
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask
from tests.support.accounts import holdings
from tests.transports.waiting.calls import RPC, Wire, post, recorded, stop, until, wires

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@wires
def test_headers_go_out_then_spaces_then_the_finished_task(owner: Person, wire: Wire) -> None:
    async def story() -> None:
        async with post(owner, wire, wire.call("go"), **{"X-Request-ID": "mine"}) as late:
            assert (late.status, late.headers["x-request-id"]) == (200, "mine")
            assert late.headers["content-type"] == wire.media
            assert late.headers["x-accel-buffering"] == "no"
            assert late.headers["cache-control"] == "no-store, no-transform"
            assert "content-length" not in late.headers
            assert [await anext(late.chunks) for _ in range(3)] == [b" "] * 3
            assert holdings(account) == [("waits", owner.caller.owner_id, 1)]
            await stop(owner, await until(Task.objects.first))
            body = await late.rest()
        assert wire.task(body)["status"]["state"] in {"TASK_STATE_COMPLETED", "completed"}
        assert holdings(account) == []

    asyncio.run(story())
    row = recorded()
    assert (row.outcome, row.http_status, row.code, row.task_id) == ("result", 200, None, Task.objects.get().id)


@wires
def test_the_same_message_again_waits_for_the_same_task_and_gets_its_end(owner: Person, wire: Wire) -> None:
    call = wire.call("go", message_id="m-1")

    async def story() -> list[Any]:
        async with post(owner, wire, call) as first, post(owner, wire, call) as again:
            assert await anext(first.chunks) == await anext(again.chunks) == b" "
            await stop(owner, await until(Task.objects.first))
            return [wire.task(await late.rest()) for late in (first, again)]

    first, again = asyncio.run(story())
    assert first == again
    assert first["status"]["state"] in {"TASK_STATE_COMPLETED", "completed"}
    assert Task.objects.count() == 1
    recorder.drain(PATIENCE)
    told = Exchange.objects.filter(caller_id=owner.caller.owner_id).order_by("id")[:2]
    assert [row.outcome for row in told] == ["result", "result"]
    assert all("m-1" in ExchangeBody.objects.get(pk=row.pk).request for row in told), "what was asked is not kept"


def test_a_call_that_waits_keeps_nothing_of_its_message_in_memory(owner: Person) -> None:
    call = RPC.call("a long message", message_id="m-1")

    async def story() -> None:
        async with post(owner, RPC, call) as first, post(owner, RPC, call) as again:
            assert await anext(first.chunks) == await anext(again.chunks) == b" "
            kept = [late.exchange for late in gc.get_objects() if isinstance(late, waiting.LateAnswer)]
            assert [(exchange.body.request, exchange._request) for exchange in kept] == [("", b"")] * 2
            await stop(owner, await until(Task.objects.first))
            await first.rest()
            await again.rest()

    gc.collect()
    asyncio.run(story())


def test_a_stream_keeps_nothing_of_its_message_in_memory(owner: Person) -> None:
    wire = Wire("/agents/gate/jsonrpc", "SendStreamingMessage", "ROLE_USER", "1.0")

    async def story() -> None:
        async with post(owner, wire, wire.call("a long message")) as answer:
            await anext(answer.chunks)
            kept = [stream.exchange for stream in gc.get_objects() if isinstance(stream, Stream)]
            assert [(exchange.body.request, exchange._request) for exchange in kept] == [("", b"")]
            await stop(owner, await until(Task.objects.first))
            await answer.rest()

    gc.collect()
    asyncio.run(story())
    recorder.drain(PATIENCE)
    assert ExchangeBody.objects.filter(request__contains="a long message").count() == 1


def test_a_client_that_leaves_ends_its_wait_and_not_its_task(owner: Person) -> None:
    async def story() -> None:
        async with post(owner, RPC, RPC.call("go")) as late:
            assert await anext(late.chunks) == b" "
        await until(lambda: not holdings(account) and not readers.waiting)

    asyncio.run(story())
    row, task = recorded(), Task.objects.get()
    assert (row.outcome, row.http_status, row.code) == ("left", 200, None)
    assert task.state in {"submitted", "working"}
    ask(owner, CancelTask(id=task.id))


@wires
def test_at_the_limit_of_the_operator_the_answer_is_the_task_as_it_is(owner: Person, wire: Wire, settings: Any) -> None:
    call = wire.call("go", message_id="m-1")

    async def story() -> bytes:
        async with post(owner, wire, call) as first:
            assert await anext(first.chunks) == b" "
            await until(Task.objects.filter(state="working").first)
            settings.A2A_WAIT_SECONDS = 0.3
            async with post(owner, wire, call) as late:
                assert await anext(late.chunks) == b" "
                return await late.rest()

    assert wire.task(asyncio.run(story()))["status"]["state"] in {"TASK_STATE_WORKING", "working"}
    ask(owner, CancelTask(id=Task.objects.get().id))


@pytest.mark.requirement("ACP-05")
def test_a_notification_is_answered_as_soon_as_its_task_is_stored(owner: Person, settings: Any) -> None:
    settings.A2A_PING_SECONDS = PATIENCE

    async def story() -> int:
        async with post(owner, RPC, RPC.call("go", rpc_id=None)) as answer:
            assert await answer.rest() == b""
            return answer.status

    assert asyncio.run(story()) == 204
    row, task = recorded(), Task.objects.get()
    assert (row.outcome, row.http_status, row.task_id) == ("notified", 204, task.id)
    assert task.state in {"submitted", "working"}
    ask(owner, CancelTask(id=task.id))


def test_an_owner_waits_no_more_often_than_tasks_may_be_unfinished(owner: Person, settings: Any) -> None:
    call = RPC.call("go", message_id="m-1")

    async def story() -> tuple[int, Any]:
        async with post(owner, RPC, call) as late:
            assert await anext(late.chunks) == b" "
            settings.A2A_OWNER_TASKS = 1
            async with post(owner, RPC, call) as refused:
                seen = refused.status, json.loads(await refused.rest())["error"]
            await stop(owner, await until(Task.objects.first))
            assert RPC.task(await late.rest())["status"]["state"] == "TASK_STATE_COMPLETED"
        return seen

    status, error = asyncio.run(story())
    assert (status, error["code"]) == (429, -38008)
