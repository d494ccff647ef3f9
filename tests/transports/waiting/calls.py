"""Calls that wait for a task whose end the test decides."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.exchanges.recording import recorder
from tasks_app.limits.accounts import account
from tasks_app.models import Exchange, Task
from tasks_app.operations import waiting as operation
from tasks_app.transports.waiting import Unfinished
from tests.conftest import PATIENCE, Person
from tests.support.accounts import holdings
from tests.support.doors import StockDoor


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


async def until(found: Callable[[], Any]) -> Any:
    async with asyncio.timeout(PATIENCE):
        while not (value := await bridge.ask(Do(found))):  # noqa: ASYNC110  # it is in the database, or another task's
            await asyncio.sleep(0.01)
        return value


async def stop(person: Person, task: Task) -> bytes:
    """Let the agent end, once it is at work: to a run that has not begun, the message would be one of those before."""
    await until(Task.objects.filter(pk=task.pk, state="working").first)
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
    """Return the exchange of the call that waited."""
    recorder.drain(PATIENCE)
    return Exchange.objects.order_by("id")[0]


def broken(person: Person, wire: Wire, hurt: Callable[[], Awaitable[Any]]) -> Exchange:
    """Hurt a call while it waits, so that its answer has no end; return its exchange."""

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
