"""Traffic of several kinds, by callers that follow docs/clients.md: they repeat their messages and resume streams."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import orjson
import psycopg

from tests.faults.clients import (
    PATIENCE,
    TERMINAL,
    Client,
    Frame,
    assert_whole,
    client,
    ended,
    envelope,
    inputs,
    listening,
    message,
    state,
    words,
)
from tests.faults.nodes import Node
from tests.support.receiver import Receiver

FRESH = """select 1 from tasks_app_task where agent = 'counted' and state = 'working' and lease_owner like %s
and status_at > now() - interval '0.5 seconds'"""
UNAVAILABLE, NOT_CANCELABLE = -38013, -32002
PAUSE = 0.2
"""Seconds before a caller without an answer tries the other web."""
CALLERS = 8
INTERRUPTED = (
    "The agent was interrupted by a restart of the server",
    "The worker was lost while the agent was at work",
)
BUDGET = """select b.reserved - coalesce(sum(r.amount) filter (where t.id is null), 0), count(t.id),
    b.spent + coalesce((select sum(c.spent) from tasks_app_drawncost c where c.budget_id = b.id), 0)
from tasks_app_budget b left join tasks_app_reservation r on r.budget_id = b.id left join tasks_app_task t
on t.id = r.task_id group by b.id"""
"""Money reserved beside advances, the reservations of tasks, and money spent. The advance of a process that was killed
is given back after two minutes (docs/budgets.md)."""
AUDITED = """select a.task_id, a.method from tasks_app_auditentry a join tasks_app_exchange e on e.id = a.exchange_id
where a.task_id is not null and a.outcome not in ('left', 'error')"""


class Traffic(Client):
    """Callers of several webs. Each repeats a call without an answer at the next web, under the same message id."""

    def __init__(self, webs: list[Node], http: httpx.AsyncClient, folder: Path, hook: Receiver) -> None:
        super().__init__(webs[0], http)
        self.webs, self.hook = webs, hook
        self.file = folder / "calls-of-counted"
        self.file.touch()
        self.turns, self.hooks = count(), count()
        self.faults: Counter[str] = Counter()
        """Faults that callers met in place of an answer."""
        self.tasks: dict[str, dict[str, Any]] = {}
        """Each task as its caller saw it at its end."""
        self.heard: dict[str, str] = {}
        """By task with a webhook: the path of the webhook."""

    def caller(self) -> Client:
        return Client(self.webs[next(self.turns) % len(self.webs)], self.http)

    async def answer(self, method: str, params: Any, agent: str | None = None) -> tuple[dict[str, Any], bool]:
        """Return the answer to a call, and whether the call was repeated."""
        body = envelope(method, params)
        repeated = False
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    response = await self.http.post(self.caller().url(agent), content=body)
                except httpx.TransportError as fault:
                    self.faults[type(fault).__name__] += 1
                    await asyncio.sleep(PAUSE)
                else:
                    reply: dict[str, Any] = orjson.loads(response.content)
                    if reply.get("error", {}).get("code") != UNAVAILABLE:
                        return reply, repeated
                    assert response.status_code == 503, response.text
                    await self.refused(float(response.headers["retry-after"]))
                repeated = True

    async def refused(self, seconds: float) -> None:
        self.faults[str(UNAVAILABLE)] += 1
        await asyncio.sleep(seconds)

    async def reply(self, method: str, params: Any, *, agent: str | None = None) -> dict[str, Any]:
        reply, _ = await self.answer(method, params, agent)
        return reply

    async def task(self, agent: str, sent: dict[str, Any], **configuration: Any) -> dict[str, Any]:
        """Return the task of a message."""
        params = {"message": sent, "configuration": configuration}
        task: dict[str, Any] = (await self.result("SendMessage", params, agent=agent))["task"]
        return task

    def note(self, task: dict[str, Any]) -> None:
        """Remember the task at its end. No two conversations have one task."""
        assert task["id"] not in self.tasks
        self.tasks[task["id"]] = task

    # ------------------------------------------------- kinds of conversations

    async def quick(self) -> None:
        sent = message({"text": f"quick {next(self.hooks)}"})
        task = await self.task("echo", sent)
        assert state(task) == "TASK_STATE_COMPLETED"
        assert task["artifacts"][0]["parts"][0]["text"] == sent["parts"][0]["text"]
        self.note(task)

    async def once(self) -> None:
        """Call an agent that may be tried once: it ends, or its task says what interrupted it."""
        task = await self.task("counted", inputs(file=str(self.file), seconds=2.5))
        if state(task) != "TASK_STATE_COMPLETED":
            assert state(task) == "TASK_STATE_FAILED"
            assert words(task).startswith(INTERRUPTED), task["status"]
        self.note(task)

    async def paid(self) -> None:
        task = await self.task("pays", inputs(seconds=0.5))
        assert state(task) == "TASK_STATE_COMPLETED", task["status"]
        self.note(task)

    async def paid_at_once(self) -> None:
        """Pay for an agent that runs within the call. A repeated message is charged once."""
        task = await self.task("pays-at-once", message({"text": "pay"}))
        assert state(task) == "TASK_STATE_COMPLETED", task["status"]
        self.note(task)

    async def canceled(self) -> None:
        task_id = await self.send("sleeper")
        await asyncio.sleep(0.2)
        reply, repeated = await self.answer("CancelTask", {"id": task_id})
        task = await ended(self, task_id)
        if "error" in reply:
            assert reply["error"]["code"] == NOT_CANCELABLE, reply
            assert repeated or words(task).startswith(INTERRUPTED)
        if state(task) != "TASK_STATE_CANCELED":
            assert words(task).startswith(INTERRUPTED), task["status"]
        self.note(task)

    async def told(self) -> None:
        """Begin a task with a webhook."""
        path = f"/hook-{next(self.hooks)}"
        config = {"url": f"{self.hook.url}{path}"}
        wish = {"taskPushNotificationConfig": config, "returnImmediately": True}
        task_id = (await self.task("story", inputs(pause=0.05, words=4), **wish))["id"]
        self.heard[task_id] = path
        task = await ended(self, task_id)
        assert state(task) == "TASK_STATE_COMPLETED", task["status"]
        self.note(task)

    async def streamed(self) -> None:
        """Follow a task, over as many connections as it takes."""
        params = {"message": inputs(words=30, pause=0.05)}
        connections: list[list[Frame]] = []
        async with asyncio.timeout(PATIENCE):
            while not connections or connections[-1][-1].state not in TERMINAL:
                after = connections[-1][-1].id if connections else None
                async with listening(
                    self.caller(), "SendStreamingMessage", params, agent="numbers", after=after
                ) as seen:
                    await seen.end()
                if seen.frames:
                    connections.append(seen.frames)
                if seen.broke is not None:
                    self.faults[type(seen.broke).__name__] += 1
                    await asyncio.sleep(PAUSE)
                elif seen.refusal:
                    assert orjson.loads(seen.refusal)["error"]["code"] == UNAVAILABLE, seen.refusal
                    await self.refused(1.0)
        task = assert_whole(*connections)
        assert state(task) == "TASK_STATE_COMPLETED"
        assert task == await self.get(task["id"])
        self.note(task)

    # --------------------------------------------------------------- the flow

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Let the callers begin one conversation after another within this block, and end those begun behind it."""
        over = asyncio.Event()
        kinds: list[Callable[[], Coroutine[Any, Any, None]]] = [
            self.quick,
            self.once,
            self.paid,
            self.paid_at_once,
            self.canceled,
            self.told,
            self.streamed,
        ]

        async def converse(number: int) -> None:
            for turn in count(number):
                await kinds[turn % len(kinds)]()
                if over.is_set():
                    return

        async with asyncio.TaskGroup() as group:
            for number in range(CALLERS):
                group.create_task(converse(number))
            yield
            over.set()

    async def more(self, tasks: int) -> None:
        """Wait until so many more tasks have ended."""
        most = len(self.tasks) + tasks
        async with asyncio.timeout(PATIENCE):
            while len(self.tasks) < most:  # noqa: ASYNC110  # the callers note them
                await asyncio.sleep(0.05)

    async def begun(self, database: str, worker: Node) -> None:
        """Wait until the worker has just begun a run that goes on for seconds, of an agent that may be tried once."""
        with psycopg.connect(database, autocommit=True) as connection:
            async with asyncio.timeout(PATIENCE):
                while not connection.execute(FRESH, [f"%:{worker.pid}:%"]).fetchone():  # noqa: ASYNC110
                    await asyncio.sleep(0.02)

    # -------------------------------------------------------------- the truth

    def interrupted(self) -> list[str]:
        """Return the tasks whose agent may be tried once, and did not end."""
        return [task_id for task_id, task in self.tasks.items() if state(task) == "TASK_STATE_FAILED"]

    async def assert_right(self, database: str) -> None:
        """Check the rows, the calls of agents and the webhooks against what the callers have seen."""
        with psycopg.connect(database) as connection:
            rows = connection.execute("select id, agent, state, spent from tasks_app_task").fetchall()
            budget = connection.execute(BUDGET).fetchone()
            audited = connection.execute(AUDITED).fetchall()
        assert {row[0]: f"TASK_STATE_{row[2].upper()}" for row in rows} == {
            task_id: state(task) for task_id, task in self.tasks.items()
        }
        self.assert_called_once({row[0] for row in rows if (row[1], row[2]) == ("counted", "completed")})
        assert budget == (0, 0, sum(row[3] for row in rows))
        assert {row[3] for row in rows if row[1] == "pays"} <= {250_000, 500_000}
        assert {row[3] for row in rows if row[1] == "pays-at-once"} == {1_000_000}
        self.assert_audited(audited)
        await self.assert_heard()

    def assert_called_once(self, completed: set[str]) -> None:
        """Check that no agent that may be tried once was called twice for a task, and each for a completed one."""
        calls = Counter(line.split()[0] for line in self.file.read_text("ascii").splitlines())
        assert set(calls.values()) == {1}
        assert completed <= set(calls)

    def assert_audited(self, entries: list[Any]) -> None:
        """Check that each task, each cancellation and no other task has an entry, beside its exchange."""
        sent = {task_id for task_id, method in entries if method in {"SendMessage", "SendStreamingMessage"}}
        assert sent == set(self.tasks)
        canceled = {task_id for task_id, task in self.tasks.items() if state(task) == "TASK_STATE_CANCELED"}
        assert canceled <= {task_id for task_id, method in entries if method == "CancelTask"}

    async def assert_heard(self) -> None:
        """Check that each webhook got each event, in order, and no other body under an id."""
        for task_id, path in self.heard.items():
            async with asyncio.timeout(PATIENCE):
                while not any(b"TASK_STATE_COMPLETED" in got.raw for got in self.hook.at(path)):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            got = self.hook.at(path)
            first = list(dict.fromkeys(one.seq for one in got))
            assert first == list(range(1, first[-1] + 1)), task_id
            assert len({(one.headers["webhook-id"], one.raw) for one in got}) == len(first), task_id


@asynccontextmanager
async def traffic(webs: list[Node], folder: Path, hook: Receiver) -> AsyncIterator[Traffic]:
    """Give callers that have a pool of connections together."""
    async with client(webs[0]) as caller:
        yield Traffic(webs, caller.http, folder, hook)
