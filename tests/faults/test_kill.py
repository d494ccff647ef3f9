"""kill -9: accepted tasks go on, and their followers get each event once."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.clients import assert_whole, client, listening
from tests.faults.conftest import Start
from tests.faults.nodes import TAKE_OVER_SECONDS, Node, assert_says_why, holder

pytestmark = pytest.mark.fault
A_NIGHT_LATER = """update tasks_app_task set
deadline = strftime('%Y-%m-%d %H:%M:%f000', deadline, '-10 hours'),
lease_until = strftime('%Y-%m-%d %H:%M:%f000', lease_until, '-10 hours') where lease_until is not null"""


async def test_a_killed_process_goes_on_and_its_reader_sees_every_event_once(start: Start) -> None:
    node = await start(A2A_LEASE_SECONDS="600")
    async with client(node) as caller:
        params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {}}]}}
        async with listening(caller, "SendStreamingMessage", params, agent="halts") as before:
            await before.count(12)
            node.kill()
            await before.end()
    assert before.broke is not None

    await node.start()
    async with client(node) as caller:
        subscription = {"id": before.task_id}
        async with listening(caller, "SubscribeToTask", subscription, after=before.last_id) as after:
            await after.end()  # Long before the lease of the killed process does.
        assert after.broke is None
        assert assert_whole(before.frames, after.frames) == await caller.get(before.task_id)
    task = await node.shown(before.task_id)
    assert (task["state"], task["fence"], task["attempt"]) == ("completed", 2, 2)
    assert [run["outcome"] for run in task["runs"]] == ["lost", "completed"]


async def test_a_task_goes_on_after_a_night_that_was_longer_than_its_timeout(start: Start) -> None:
    node = await start()
    async with client(node) as caller:
        task_id = await caller.send("halts")
        await caller.state(task_id, "TASK_STATE_WORKING")
    node.kill()
    with closing(sqlite3.connect(node.folder / "taskdesk.sqlite3")) as file, file:
        assert file.execute(A_NIGHT_LATER).rowcount == 1
    await node.start()
    async with client(node) as caller:
        await caller.state(task_id, "TASK_STATE_COMPLETED")
    assert [run["outcome"] for run in (await node.shown(task_id))["runs"]] == ["lost", "completed"]


async def test_a_client_that_asks_again_with_its_message_is_led_back_to_its_task(start: Start) -> None:
    node = await start()
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {}}]}}
    async with client(node) as caller, listening(caller, "SendStreamingMessage", params, agent="halts") as before:
        await before.count(6)
        node.kill()
        await before.end()
    await node.start()
    async with (
        client(node) as caller,
        listening(caller, "SendStreamingMessage", params, agent="halts", after=before.last_id) as after,
    ):
        await after.end()
        assert assert_whole(before.frames, after.frames) == await caller.get(before.task_id)


async def test_an_agent_tried_once_fails_with_a_reason_when_its_process_is_killed(start: Start) -> None:
    node = await start(A2A_LEASE_SECONDS="600")
    async with client(node) as caller, listening(caller, "SendStreamingMessage", once(), agent="once") as before:
        await before.count(3)
        node.kill()
        await before.end()
    await node.start()
    async with client(node) as caller:
        task = await caller.state(before.task_id, "TASK_STATE_FAILED")
        assert_says_why(task)
        async with listening(caller, "SubscribeToTask", {"id": before.task_id}, after=before.last_id) as after:
            await after.end()
    assert assert_whole(before.frames, after.frames) == task


async def test_a_second_process_on_a_file_leaves_the_runs_of_the_first_alone(start: Start, tmp_path: Path) -> None:
    """A folder has one process at a time, so the second one has a folder of its own, with the secret of the first."""
    first, gate, other_gate = await start(), tmp_path / "open", tmp_path / "other-open"
    (tmp_path / "other").mkdir()
    shutil.copy(first.folder / "secret.key", tmp_path / "other")
    async with client(first) as caller:
        at_work = await caller.send("once", until=str(gate))
        await caller.state(at_work, "TASK_STATE_WORKING")
        file = f"sqlite:///{first.folder}/taskdesk.sqlite3"
        second = await start("serve", "other", DATABASE_URL=file)
        gate.touch()
        await caller.state(at_work, "TASK_STATE_COMPLETED")
        assert "another process uses" in second.log
        # The second one keeps its runs, too, when the first starts again.
        assert await first.stop() == 0
    async with client(second) as caller:
        at_work = await caller.send("once", until=str(other_gate))
        await caller.state(at_work, "TASK_STATE_WORKING")
        await first.start()
        other_gate.touch()
        await caller.state(at_work, "TASK_STATE_COMPLETED")


async def test_an_agent_tried_once_fails_when_another_process_finds_its_worker_lost(
    pair: tuple[Node, Node], postgres: str
) -> None:
    async with client(pair[0]) as caller:
        task_id = await caller.send("once")
        await caller.state(task_id, "TASK_STATE_WORKING")
        owner, other = holder(postgres, task_id, pair)
        owner.kill()
    async with client(other) as caller:
        assert_says_why(await caller.state(task_id, "TASK_STATE_FAILED", TAKE_OVER_SECONDS))
    task = await other.shown(task_id)
    assert [run["outcome"] for run in task["runs"]] == ["lost"]


async def test_two_processes_show_the_same_events_to_the_byte(pair: tuple[Node, Node]) -> None:
    assert f"serving at {pair[1].base}\n" in pair[1].log
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"pause": 0.03, "words": 2}}]}}
    async with client(pair[0]) as here, client(pair[1]) as there:
        async with listening(here, "SendStreamingMessage", params, agent="story") as sender:
            await sender.count(1)
            async with listening(there, "SubscribeToTask", {"id": sender.task_id}, after=1) as follower:
                await follower.end()
                await sender.end()
        assert assert_whole(sender.frames) == await there.get(sender.task_id)
        assert follower.frames == sender.frames


async def test_the_other_process_takes_over_and_its_follower_sees_the_story_through(
    pair: tuple[Node, Node], postgres: str
) -> None:
    async with client(pair[0]) as caller:
        task_id = await caller.send("halts")
        await caller.state(task_id, "TASK_STATE_WORKING")
    owner, other = holder(postgres, task_id, pair)
    async with client(other) as caller, listening(caller, "SubscribeToTask", {"id": task_id}, after=1) as follower:
        await follower.count(8)
        owner.kill()
        await follower.until(lambda seen: seen.began_again(), TAKE_OVER_SECONDS)
        await follower.end()
        assert assert_whole(follower.frames) == await caller.get(task_id)
    assert [run["outcome"] for run in (await other.shown(task_id))["runs"]] == ["lost", "completed"]


def once() -> dict[str, object]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]}}
