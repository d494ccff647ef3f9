"""The order to stop: a process answers its callers, releases what may run again, and ends in five seconds."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from pathlib import Path
from signal import SIGCONT, SIGINT, SIGSTOP, SIGTERM, Signals

import orjson
import pytest

from tasks_app.transports.receiving import AT_ONCE
from tests.faults.clients import PATIENCE, Client, assert_whole, client, envelope, inputs, listening, silent, unread
from tests.faults.conftest import Start, migrate
from tests.faults.nodes import Node
from tests.support.servers import Cluster, database

pytestmark = pytest.mark.fault
END_SECONDS = 5.0
"""From Ctrl-C to the end of the process (design 11)."""
SLACK = 20.0
"""How much longer it may take on a machine that others use too: still less than any agent here takes."""
SUPERVISOR_SECONDS = 90.0
"""After which systemd kills a process that it has told to stop."""
SHORT_GRACE = {"A2A_GRACE_SECONDS": "0.5"}
"""So that most of the time is slack; what the usual grace leaves of it, one test shows."""


async def ends_in_time(node: Node, number: Signals = SIGINT) -> None:
    since = time.monotonic()
    code = await node.stop(number, PATIENCE)
    took = time.monotonic() - since
    assert code == 0, node.log
    assert took < END_SECONDS + SLACK
    assert "Traceback" not in node.log


async def working(caller: Client, number: int) -> None:
    """Wait until so many tasks are at work."""
    async with asyncio.timeout(PATIENCE):
        wish = {"status": "TASK_STATE_WORKING"}
        while (await caller.result("ListTasks", wish))["totalSize"] < number:  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.02)


async def arrived(node: Node, calls: int = 1) -> None:
    """Wait until the server has read so many calls, and has had a moment to begin with them."""
    async with asyncio.timeout(PATIENCE):
        while len(unread(node)) < calls or any(unread(node)):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.5)


@pytest.mark.parametrize("number", [SIGINT, SIGTERM], ids=["ctrl-c", "sigterm"])
async def test_an_order_to_stop_ends_streams_answers_calls_that_wait_and_ends_runs(
    start: Start, number: Signals
) -> None:
    node = await start(**SHORT_GRACE)
    async with client(node) as caller:
        waits = {"message": inputs(pause=2, words=4)}
        params = {"message": inputs()}
        async with listening(caller, "SendStreamingMessage", params, agent="once") as before:
            body = envelope("SendMessage", waits, "w")
            waiting = asyncio.create_task(caller.http.post(caller.url("story"), content=body))
            await before.count(3)
            await working(caller, 2)
            assert not waiting.done()
            await ends_in_time(node, number)
            await before.end()
            answer = await waiting
    assert before.broke is None
    assert before.comments == [": the server is going down, come back with Last-Event-ID"]
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    reply = orjson.loads(answer.content)
    assert (reply["id"], reply["error"]["code"]) == ("w", -38013)
    (waited_for,) = [task["id"] for task in await node.lines("tasks", "list", "--agent", "story")]
    assert "the message is stored" in reply["error"]["message"]
    assert reply["error"]["data"][0]["metadata"]["taskId"] == waited_for
    for task_id, state in ((before.task_id, "failed"), (waited_for, "submitted")):
        task = await node.shown(task_id)
        assert (task["state"], task["fence"], task["attempt"], task["lease_owner"]) == (state, 1, 1, None)
        assert [run["outcome"] for run in task["runs"]] == ["interrupted"]

    await node.start()
    async with client(node) as caller:
        async with listening(caller, "SubscribeToTask", {"id": before.task_id}, after=before.last_id) as after:
            await after.end()
        assert assert_whole(before.frames, after.frames) == await caller.state(before.task_id, "TASK_STATE_FAILED")
        await caller.state(waited_for, "TASK_STATE_WORKING")
        again = await caller.result(
            "SendMessage", waits | {"configuration": {"returnImmediately": True}}, agent="story"
        )
        assert (again["task"]["id"], again["task"]["status"]["state"]) == (waited_for, "TASK_STATE_WORKING")
        assert (await node.shown(waited_for))["attempt"] == 2


async def test_calls_that_wait_for_the_database_are_refused_at_the_end(start: Start) -> None:
    """They would take longer than the two seconds that the server waits for calls under way."""
    node = await start(**SHORT_GRACE)
    bodies = {
        "/agents/story/jsonrpc": envelope("SendMessage", {"message": inputs()}, "single"),
        "/agents/story/message:send": orjson.dumps({"message": inputs()}),
    }
    async with client(node) as caller:
        with closing(sqlite3.connect(node.folder / "taskdesk.sqlite3", isolation_level=None)) as other:
            other.execute("begin immediate")
            calls = [
                asyncio.create_task(caller.http.post(node.base + path, content=body)) for path, body in bodies.items()
            ]
            await arrived(node, len(calls))
            node.tell(SIGTERM)
            answers = await asyncio.gather(*calls)
            other.execute("rollback")
        assert await node.ended() == 0
    assert [(answer.status_code, answer.headers["retry-after"]) for answer in answers] == [(503, "2")] * 2
    single, rest = (orjson.loads(answer.content) for answer in answers)
    assert (single["id"], single["error"]["code"]) == ("single", -38013)
    assert rest["error"]["status"] == "UNAVAILABLE"
    assert "Traceback" not in node.log
    recorded = await node.lines("exchanges", "list", "--method", "SendMessage", "--outcome", "error")
    assert {exchange["rpc_id"]: exchange["code"] for exchange in recorded if exchange["rpc_id"]} == {"single": -38013}


async def test_each_member_of_a_batch_under_way_is_answered_at_the_end(start: Start) -> None:
    node = await start(**SHORT_GRACE)
    sends = [f"send-{number}" for number in range(AT_ONCE + 4)]
    notification = orjson.dumps({"jsonrpc": "2.0", "method": "SendMessage", "params": {"message": inputs()}})
    members = [
        envelope("GetTask", {"id": "none"}, "get"),
        notification,
        *(envelope("SendMessage", {"message": inputs()}, id) for id in sends),
        notification,
    ]
    async with client(node) as caller:
        with closing(sqlite3.connect(node.folder / "taskdesk.sqlite3", isolation_level=None)) as other:
            other.execute("begin immediate")
            call = asyncio.create_task(caller.http.post(caller.url(), content=b"[%b]" % b",".join(members)))
            await arrived(node)
            node.tell(SIGTERM)
            answer = await call
            other.execute("rollback")
        assert await node.ended() == 0
    replies = [(reply["id"], reply["error"]["code"]) for reply in answer.json()]
    assert replies == [("get", -32001), *((id, -38013) for id in sends)]
    assert answer.status_code == 200
    assert "Traceback" not in node.log
    recorded = await node.lines("exchanges", "list", "--method", "SendMessage")
    assert {exchange["rpc_id"]: exchange["code"] for exchange in recorded if exchange["rpc_id"]} == dict.fromkeys(
        sends, -38013
    )


@pytest.fixture
def own_database(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    """Give a database with its tables, on a server that only the test freezes."""
    with database(cluster.url) as url:
        migrate(tmp_path / "data", DATABASE_URL=url)
        yield url


@contextmanager
def frozen(cluster: Cluster) -> Iterator[None]:
    cluster.tell(SIGSTOP)
    try:
        yield
    finally:
        cluster.tell(SIGCONT)


async def test_a_call_whose_key_a_frozen_database_does_not_return_is_refused_too(
    start: Start, cluster: Cluster, own_database: str
) -> None:
    node = await start(DATABASE_URL=own_database, **SHORT_GRACE)
    async with client(node) as caller:
        with frozen(cluster):
            body = envelope("GetTask", {"id": "none"}, "single")
            call = asyncio.create_task(caller.http.post(caller.url(), content=body))
            await arrived(node)
            node.tell(SIGTERM)
            answer = await call
    assert await node.ended() == 0
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    reply = orjson.loads(answer.content)
    assert (reply["id"], reply["error"]["code"]) == ("single", -38013)
    assert "Traceback" not in node.log


@pytest.mark.long
async def test_a_process_ends_by_itself_though_its_database_hangs(
    start: Start, cluster: Cluster, own_database: str
) -> None:
    node = await start(DATABASE_URL=own_database, A2A_GRACE_SECONDS="25")
    async with client(node) as caller:
        await caller.state(await caller.send("sleeper"), "TASK_STATE_WORKING")
        with frozen(cluster):
            assert await node.stop(SIGTERM, SUPERVISOR_SECONDS) == 0
    assert "the process ends before all exchanges are recorded" in node.log
    assert "Traceback" not in node.log


async def test_a_page_that_a_frozen_database_holds_up_is_refused_at_the_end(
    start: Start, cluster: Cluster, own_database: str
) -> None:
    node = await start(DATABASE_URL=own_database, **SHORT_GRACE)
    async with client(node) as caller:
        with frozen(cluster):
            page = caller.http.get(f"{node.base}/admin/", headers={"Cookie": f"sessionid={'a' * 32}"})
            call = asyncio.create_task(page)
            await arrived(node)
            node.tell(SIGTERM)
            answer = await call
        # Django's own handler gets its session now.
    assert await node.ended() == 0
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert answer.text == "The server is going down. Try again in 2 s.\n"
    assert "Traceback" not in node.log


async def test_fifty_idle_streams_do_not_hold_up_the_end(start: Start) -> None:
    node = await start(**SHORT_GRACE)
    async with client(node) as caller, AsyncExitStack() as streams:
        seen = [
            await streams.enter_async_context(
                listening(caller, "SendStreamingMessage", {"message": inputs()}, agent="sleeper")
            )
            for _ in range(50)
        ]
        for listener in seen:
            await listener.count(2)
        await ends_in_time(node)
        for listener in seen:
            await listener.end()
    assert [listener.broke for listener in seen] == [None] * 50
    tasks = await node.lines("tasks", "list", "--agent", "sleeper")
    assert [(task["state"], task["attempt"]) for task in tasks] == [("failed", 1)] * 50


async def test_an_agent_that_blocks_its_thread_does_not_hold_up_the_end(start: Start) -> None:
    node = await start()
    async with client(node) as caller:
        task_id = await caller.send("stubborn")
        await caller.state(task_id, "TASK_STATE_WORKING")
        await ends_in_time(node)


async def test_a_client_that_does_not_read_does_not_hold_up_the_end(start: Start) -> None:
    node = await start(**SHORT_GRACE)
    async with client(node) as caller:
        task_id = await caller.send("chatty", chunks=600)
        await caller.completed(1)
        await caller.state(await caller.send("once"), "TASK_STATE_WORKING")
        with silent(node, task_id):
            await asyncio.sleep(0.5)
            await ends_in_time(node)


async def test_the_second_ctrl_c_leaves_at_once(start: Start) -> None:
    node = await start(A2A_GRACE_SECONDS="60")
    async with client(node) as caller:
        await caller.state(await caller.send("once"), "TASK_STATE_WORKING")
    node.tell(SIGINT)
    await node.logs("1 run has 60 s to end")
    assert await node.stop(SIGINT, END_SECONDS + SLACK) == 1
    assert "Traceback" not in node.log
