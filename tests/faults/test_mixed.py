"""A thousand calls of all kinds, in both versions: each is found in the table of exchanges next to its answer."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest
from msgspec import Struct

from tests.faults.clients import HEADERS, PATIENCE, inputs
from tests.faults.conftest import Start
from tests.faults.nodes import Node

pytestmark = pytest.mark.fault
TYPES = {str: "string", int: "number", type(None): "null"}
NONE = object()
"""No id: a notification, or a body in which none can be read."""


class Ask(Struct, kw_only=True):
    """One call, and how its exchange must look."""

    rpc_id: Any
    method: str = ""
    params: Any = None
    dialect: str = ""
    outcome: str = "result"
    code: int | None = None
    status: int = 200
    task_id: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        wire = {"jsonrpc": "2.0", "method": self.method, "params": self.params or {}}
        return wire if self.rpc_id is NONE else wire | {"id": self.rpc_id}

    def row(self, batch: bool = False) -> tuple[Any, ...]:
        """Return the row that the table must have."""
        absent = self.rpc_id is NONE
        shown = None if absent or self.rpc_id is None else str(self.rpc_id)
        kind = "absent" if absent else TYPES[type(self.rpc_id)]
        return (shown, kind, self.method, self.dialect, self.outcome, self.code, self.status, self.task_id)


COLUMNS = ("rpc_id", "rpc_id_type", "method", "dialect", "outcome", "code", "http_status", "task_id")
OLD = {"dialect": "a2a-0.3"}
NEW = {"dialect": "a2a-1.0"}


def old_inputs(**values: Any) -> dict[str, Any]:
    part = {"kind": "data", "data": values}
    return inputs() | {"kind": "message", "role": "user", "parts": [part]}


def send(rpc_id: Any, **values: Any) -> Ask:
    """To echo; by turns in 1.0 with an id that is a string, and in 0.3 with a number."""
    if isinstance(rpc_id, str):
        return Ask(rpc_id=rpc_id, method="SendMessage", params={"message": inputs(**values)}, **NEW)
    return Ask(rpc_id=rpc_id, method="message/send", params={"message": old_inputs(**values)}, **OLD)


def get(rpc_id: Any, task_id: str, **more: Any) -> Ask:
    method, dialect = ("GetTask", NEW) if isinstance(rpc_id, str | None) else ("tasks/get", OLD)
    return Ask(rpc_id=rpc_id, method=method, params={"id": task_id}, task_id=task_id, **dialect | more)


def wrong(number: int) -> Ask:
    """Return a call that is refused once it is understood."""
    name = f"wrong-{number}"
    return (
        Ask(rpc_id=name, method="NoSuchMethod", outcome="error", code=-32601),
        Ask(rpc_id=name, method="SendMessage", params={"message": 5}, outcome="error", code=-32602, **NEW),
        Ask(rpc_id=number, method="message/send", params={"message": {}}, outcome="error", code=-32602, **OLD),
        get(name, "no-such-task", outcome="error", code=-32001),
        get(number, "no-such-task", outcome="error", code=-32001),
    )[number % 5]


def shifted(start: int, count: int) -> Iterator[Any]:
    """Give ids, by turns a string and a number."""
    return (number if number % 2 else f"id-{number}" for number in range(start, start + count))


def task_of(reply: dict[str, Any]) -> str:
    result = reply["result"]
    return result.get("task", result)["id"]


class Run:
    """The calls of one kind share a request id, by which their exchanges are found."""

    def __init__(self, node: Node, http: httpx.AsyncClient) -> None:
        self.node = node
        self.http = http
        self.asked: dict[str, list[tuple[Any, ...]]] = {}
        self.slots = asyncio.Semaphore(8)

    async def post(self, kind: str, content: bytes, **headers: str) -> httpx.Response:
        async with self.slots:
            url = f"{self.node.base}/jsonrpc"
            return await self.http.post(url, content=content, headers={"X-Request-ID": kind} | headers)

    def note(self, kind: str, ask: Ask) -> None:
        self.asked.setdefault(kind, []).append(ask.row())

    async def single(self, kind: str, ask: Ask) -> Ask:
        response = await self.post(kind, orjson.dumps(ask.body))
        assert response.status_code == ask.status
        if ask.rpc_id is not NONE:
            self.answered(ask, orjson.loads(response.content))
        self.note(kind, ask)
        return ask

    def answered(self, ask: Ask, reply: dict[str, Any]) -> None:
        """The answer is the call's own; its task is from now on known."""
        assert reply["id"] == ask.rpc_id
        assert type(reply["id"]) is type(ask.rpc_id)
        assert reply.get("error", {}).get("code") == ask.code, reply
        if ask.code is None:
            ask.task_id = task_of(reply)

    async def batch(self, kind: str, asks: list[Ask]) -> None:
        response = await self.post(kind, orjson.dumps([ask.body for ask in asks]))
        replies = orjson.loads(response.content)
        for ask, reply in zip((ask for ask in asks if ask.rpc_id is not NONE), replies, strict=True):
            self.answered(ask, reply)
        for ask in asks:
            self.note(kind, ask)

    async def refused(self, kind: str, ask: Ask, content: bytes, verb: str = "POST", **headers: str) -> None:
        async with self.slots:
            url, own = f"{self.node.base}/jsonrpc", {"X-Request-ID": kind} | headers
            response = await self.http.request(verb, url, content=content, headers=own)
        assert response.status_code == ask.status
        assert orjson.loads(response.content)["error"]["code"] == ask.code
        self.note(kind, ask)


def notification(number: int) -> Ask:
    """Return a notification: its work is done, and nothing is answered, no mistake either."""
    if number % 3:
        return Ask(
            rpc_id=NONE,
            method="GetTask",
            params={"id": "x"},
            outcome="notified",
            code=-32001,
            status=204,
            task_id="x",
            **NEW,
        )
    return Ask(rpc_id=NONE, method="ListTasks", outcome="notified", status=204, **NEW)


def members(number: int, task_id: str) -> list[Ask]:
    first, second, third, fourth = shifted(10_000 + number * 10, 4)
    return [send(first), wrong(number), get(second, task_id), notification(number), send(third), get(fourth, task_id)]


REFUSALS = (
    (Ask(rpc_id="who", outcome="refused", code=-38009, status=401), b"", {"Authorization": "Bearer nobody"}),
    (Ask(rpc_id=NONE, outcome="refused", code=-32700), b"{", {}),
    (Ask(rpc_id="old", outcome="refused", code=-32600), b'{"jsonrpc":"1.0","id":"old","method":"GetTask"}', {}),
    (Ask(rpc_id=NONE, outcome="refused", code=-32600, status=413), b" " * 1_000_001, {}),
    (Ask(rpc_id=NONE, outcome="refused", code=-32600, status=415), b"{}", {"Content-Type": "text/plain"}),
)


async def streams(run: Run, count: int) -> None:
    """By turns in 1.0 and 0.3; each to its end."""
    for number in range(count):
        new = number % 2 == 0
        ask = Ask(rpc_id=f"stream-{number}" if new else number, outcome="stream", **NEW if new else OLD)
        ask.method = "SendStreamingMessage" if new else "message/stream"
        ask.params = {"message": (inputs if new else old_inputs)(pause=0, words=20)}
        response = await run.http.post(
            f"{run.node.base}/agents/story/jsonrpc", content=orjson.dumps(ask.body), headers={"X-Request-ID": "streams"}
        )
        replies = [orjson.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
        assert {reply["id"] for reply in replies} == {ask.rpc_id}
        ask.task_id = task_of(replies[0])
        run.note("streams", ask)


async def test_every_call_of_a_mixed_thousand_is_found_next_to_its_answer(start: Start) -> None:
    node = await start()
    async with httpx.AsyncClient(headers=HEADERS, timeout=PATIENCE) as http:
        run = Run(node, http)
        sent = await asyncio.gather(*(run.single("sends", send(rpc_id)) for rpc_id in shifted(0, 250)))
        tasks = [ask.task_id or "" for ask in sent]
        calls = [run.single("gets", get(rpc_id, tasks[n])) for n, rpc_id in enumerate(shifted(500, 200))]
        calls += [run.single("nulls", get(None, tasks[n])) for n in range(20)]
        calls += [run.single("wrong", wrong(number)) for number in range(100)]
        calls += [run.single("notifications", notification(number)) for number in range(60)]
        calls += [run.batch("batches", members(number, tasks[number])) for number in range(40)]
        for ask, content, headers in REFUSALS:
            body = content or orjson.dumps(send("who").body)
            kind = "refusals" if ask.status == 200 else "strangers"
            calls += [run.refused(kind, ask, body, **headers) for _ in range(16)]
        forbidden = Ask(rpc_id=NONE, outcome="refused", code=-32600, status=405)
        calls += [run.refused("strangers", forbidden, b"", "GET") for _ in range(10)]
        await asyncio.gather(*calls, streams(run, 40))
    # The order to stop comes at once: what was not written yet is written on the way out.
    assert await node.stop() == 0
    assert sum(map(len, run.asked.values())) == 1000
    await strangers_are_counted(node, run.asked.pop("strangers"))
    found = await asyncio.gather(*(node.lines("exchanges", kind) for kind in run.asked))
    for (kind, asked), rows in zip(run.asked.items(), found, strict=True):
        seen = Counter(tuple(row[name] for name in COLUMNS) for row in rows)
        assert seen == Counter(asked), kind
        assert all(row["duration_us"] is not None for row in rows)


async def strangers_are_counted(node: Node, asked: list[tuple[Any, ...]]) -> None:
    """Each refused call of a caller who is not known is counted, and the first ten in a minute have exchanges."""
    rows = await node.lines("exchanges", "strangers")
    counts = await node.lines("a2a", "refusals")
    assert sum(count["unauthenticated"] + count["limited"] + count["invalid"] for count in counts) == len(asked)
    assert len(rows) == sum(count["recorded"] for count in counts) >= 10
    assert Counter(tuple(row[name] for name in COLUMNS) for row in rows) <= Counter(asked)
