"""kill -9 between an event and its delivery: the next process delivers it, in order, under the same id."""

import asyncio
import threading

import pytest

from tests.faults.clients import Client, client, message
from tests.faults.conftest import Start
from tests.faults.nodes import Node
from tests.support.receiver import Receiver, Reply, receiver

pytestmark = pytest.mark.fault
SOON_SECONDS = 60.0


async def send_with_webhook(caller: Client, there: Receiver, **inputs: float) -> str:
    """Send a task to an agent that talks for a while, with a webhook from its beginning; return its id."""
    configuration = {
        "returnImmediately": True,
        "taskPushNotificationConfig": {"url": f"{there.url}/hook", "token": "tok"},
    }
    params = {"message": message({"data": inputs}), "configuration": configuration}
    return str((await caller.result("SendMessage", params, agent="story"))["task"]["id"])


async def whole(there: Receiver, seconds: float) -> list[int]:
    """Return the sequence numbers in the order in which they were first acknowledged, once the end is among them."""
    async with asyncio.timeout(seconds):
        while b"TASK_STATE_COMPLETED" not in b"".join(got.raw for got in there.got):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return list(dict.fromkeys(got.seq for got in there.got))


async def test_a_killed_process_delivers_after_its_restart_what_it_had_written(start: Start) -> None:
    with receiver() as there:
        gate = threading.Event()
        there.default = Reply(until=gate)
        node = await start()
        async with client(node) as caller:
            task_id = await send_with_webhook(caller, there, pause=0.05, words=1)
            # One delivery is under way and unanswered; the others wait behind it.
            await asyncio.to_thread(there.wait, 1)
            await caller.state(task_id, "TASK_STATE_WORKING", SOON_SECONDS)
        node.kill()
        there.default = Reply()
        gate.set()
        before = list(there.got)
        await node.start()
        seqs = await whole(there, SOON_SECONDS)
        lines = await node.lines("deliveries", "list", "--task", task_id, "--limit", "1000")
    # Its process died before the answer was written down: it comes again, and is known by its id.
    again = [got for got in there.got[len(before) :] if got.seq == before[0].seq]
    assert [got.headers["webhook-id"] for got in again] == [before[0].headers["webhook-id"]]
    assert again[0].raw == before[0].raw
    assert seqs == sorted(seqs)
    # One POST for each event of the task, apart from the messages of its caller.
    assert sorted(line["seq"] for line in lines) == seqs
    assert seqs == list(range(1, seqs[-1] + 1))


async def test_another_process_goes_on_with_the_deliveries_of_one_that_was_killed(
    pair: tuple[Node, Node],
) -> None:
    with receiver() as there:
        there.default = Reply(503)
        async with client(pair[0]) as caller:
            # The task ends while the gaps between tries are short.
            task_id = await send_with_webhook(caller, there, pause=0.02, words=8)
            await caller.state(task_id, "TASK_STATE_COMPLETED", SOON_SECONDS)
        await asyncio.to_thread(there.wait, 1)
        pair[0].kill()
        with there.lock:
            there.default = Reply()
            tried = len(there.got)
        # The next try comes after a gap of six seconds at most, or after the lease of the killed process.
        seqs = await whole(there, SOON_SECONDS)
    assert seqs == list(range(1, seqs[-1] + 1))
    assert [got.seq for got in there.got[tried:]] == seqs
