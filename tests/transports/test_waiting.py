"""A call that waits for longer than a client or a proxy bears silence: headers, spaces, and at last the answer."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from django.db import OperationalError

from a2a.errors import TaskNotFound
from a2a.requests import CancelTask
from tasks_app.callers.access import revoke
from tasks_app.callers.accounts import account
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.event_log.readers import readers
from tasks_app.exchanges.recording import recorder
from tasks_app.models import ApiKey, Exchange, ExchangeBody, Task
from tasks_app.operations import waiting as operation
from tasks_app.transports import waiting
from tasks_app.transports.waiting import Unfinished
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask
from tests.support.accounts import holdings
from tests.support.agents import GEO
from tests.support.story import StockDoor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


class Wire(NamedTuple):
    """A dialect at a door: how a message is sent to an agent that says a word for each message, until one is stop."""

    path: str
    method: str
    role: str
    version: str
    media: str = "application/json"

    def call(self, text: str, rpc_id: Any = 1, message_id: str = "", **members: Any) -> Any:
        part = {"kind": "text", "text": text} if self.version == "0.3" else {"text": text}
        message = {"messageId": message_id or uuid4().hex, "role": self.role, "parts": [part], **members}
        if not self.method:
            return {"message": message}
        wire = {"jsonrpc": "2.0", "method": self.method, "params": {"message": message}}
        return wire if rpc_id is None else wire | {"id": rpc_id}

    def task(self, body: bytes) -> Any:
        answer = json.loads(body)
        result = answer["result"] if self.method else answer
        return result if self.version == "0.3" and self.method else result["task"]


RPC = Wire("/agents/gate/jsonrpc", "SendMessage", "ROLE_USER", "1.0")
OLD_RPC = Wire("/agents/gate/jsonrpc", "message/send", "user", "0.3")
REST = Wire("/agents/gate/message:send", "", "ROLE_USER", "1.0", "application/a2a+json")
OLD_REST = Wire("/agents/gate/v1/message:send", "", "user", "0.3")
wires = pytest.mark.parametrize(
    "wire", [RPC, OLD_RPC, REST, OLD_REST], ids=["1.0", "0.3", "1.0 over REST", "0.3 over REST"]
)


class Late(NamedTuple):
    """An answer under way."""

    status: int
    headers: dict[str, str]
    chunks: AsyncIterator[bytes]

    async def rest(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return b"".join([chunk async for chunk in self.chunks])


@pytest.fixture(autouse=True)
def short_silence(settings: Any) -> None:
    settings.A2A_PING_SECONDS, settings.A2A_WAIT_SECONDS = 0.05, 0


async def until(found: Callable[[], Any]) -> Any:
    async with asyncio.timeout(PATIENCE):
        while not (value := await bridge.ask(Do(found))):  # noqa: ASYNC110  # it is in the database, or another task's
            await asyncio.sleep(0.01)
        return value


async def stop(person: Person, task: Task) -> bytes:
    """Let the agent end."""
    wire = RPC.call("stop", taskId=task.id)
    wire["params"]["configuration"] = {"returnImmediately": True}
    async with post(person, RPC, wire) as answer:
        return await answer.rest()


def post(person: Person, wire: Wire, body: Any, **headers: str) -> Any:
    told = {"Authorization": f"Bearer {person.key}", "Content-Type": "application/json", **headers}

    class Asked:
        async def __aenter__(self) -> Late:
            self.asking = StockDoor().ask("POST", wire.path, json.dumps(body).encode(), told)
            return Late(*await self.asking.__aenter__())

        async def __aexit__(self, *error: Any) -> None:
            await self.asking.__aexit__(*error)

    return Asked()


def recorded() -> Exchange:
    """The exchange of the call that waited."""
    recorder.drain(PATIENCE)
    return Exchange.objects.order_by("id")[0]


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


def broken(person: Person, wire: Wire, hurt: Callable[[], Awaitable[Any]]) -> Exchange:
    """The exchange of a call that is hurt while it waits, and whose answer therefore has no end."""

    async def story() -> None:
        async with post(person, wire, wire.call("go")) as late:
            assert await anext(late.chunks) == b" "
            task = await until(Task.objects.first)
            await hurt()
            await stop(person, task)
            with pytest.raises(Unfinished):
                await late.rest()

    asyncio.run(story())
    row = recorded()
    assert (row.outcome, row.http_status, row.response_bytes) == ("broken", 200, 0)
    assert holdings(account) == []
    return row


def answer_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async def refuse(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(operation, "_answer", refuse)


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


def test_a_look_at_the_key_while_the_database_is_away_ends_no_wait(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "KEY_SECONDS", 0.05)
    looks: list[Any] = []

    class Away:
        @staticmethod
        async def ask(look: Any) -> Any:
            looks.append(look)
            raise OperationalError

    async def story() -> bytes:
        async with post(owner, RPC, RPC.call("go")) as late:
            assert await anext(late.chunks) == b" "
            monkeypatch.setattr(waiting, "bridge", Away)
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


@wires
def test_at_the_limit_of_the_operator_the_answer_is_the_task_as_it_is(owner: Person, wire: Wire, settings: Any) -> None:
    settings.A2A_WAIT_SECONDS = 0.3

    async def story() -> bytes:
        async with post(owner, wire, wire.call("go")) as late:
            assert await anext(late.chunks) == b" "
            return await late.rest()

    assert wire.task(asyncio.run(story()))["status"]["state"] in {"TASK_STATE_WORKING", "working"}
    ask(owner, CancelTask(id=Task.objects.get().id))


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


# ------------------------------------------------------------------ batches


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
