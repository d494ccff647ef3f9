"""Agents that hang: they block their process, and harm no other task."""

import asyncio
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.faults.clients import PATIENCE, Client, client, ended, inputs, pipe, release, state, words
from tests.faults.conftest import Plant, Start
from tests.faults.nodes import HOSTILE

pytestmark = pytest.mark.fault
AGENTS_FILE, HOSTILE_FILE = (Path(__file__).with_name(f"{name}.py") for name in ("agents", "hostile_agents"))
"""Loaded by the nodes only."""


def pid_of(task: dict[str, Any]) -> int:
    return int(task["artifacts"][0]["parts"][0]["data"]["pid"])


@pytest.mark.finds("agent hung", "(hung)")
async def test_hung_sync_agents_keep_their_slots_and_cost_no_other_task(plant: Plant) -> None:
    web, ill = await plant.web(), await plant.worker(A2A_SYNC_SLOTS="8")
    async with client(web) as caller:
        hung = [await caller.send("hung") for _ in range(8)]
        for task_id in hung:
            task = await ended(caller, task_id)
            assert words(task) == "The agent took longer than its timeout of 1 s."
        early = [await caller.send("brief") for _ in range(20)]
        awake = await caller.send("sleeper", seconds=0)
        assert state(await ended(caller, awake)) == "TASK_STATE_COMPLETED", "async agents go on there"
        assert {state(await caller.get(task_id)) for task_id in early} == {"TASK_STATE_SUBMITTED"}
        healthy = await plant.worker(A2A_SYNC_SLOTS="8")
        sent = early + [await caller.send("brief") for _ in range(40)]
        tasks = [await ended(caller, task_id) for task_id in sent]
    assert [state(task) for task in tasks] == ["TASK_STATE_COMPLETED"] * 60
    assert {pid_of(task) for task in tasks} == {healthy.pid} != {ill.pid}
    for task_id in hung:
        assert [run["outcome"] for run in (await web.shown(task_id))["runs"]] == ["failed"]


@pytest.mark.finds("agent hung", "(hung)")
async def test_a_thread_that_comes_back_is_used_again_and_its_late_words_are_refused(
    start: Start, tmp_path: Path
) -> None:
    node, blocked = await start(A2A_SYNC_SLOTS="1", A2A_LEASE_SECONDS="2", A2A_SWEEP_SECONDS="0.5"), pipe(tmp_path)
    async with client(node) as caller:
        late = await caller.send("hung", until=str(blocked))
        assert state(await ended(caller, late)) == "TASK_STATE_FAILED"
        waiting = await caller.send("brief")
        assert state(await ended(caller, await caller.send("sleeper", seconds=0))) == "TASK_STATE_COMPLETED"
        assert state(await caller.get(waiting)) == "TASK_STATE_SUBMITTED", "it waits for the thread"
        release(blocked)
        assert state(await ended(caller, waiting)) == "TASK_STATE_COMPLETED"
        task = await caller.get(late)
    assert (state(task), task.get("artifacts")) == ("TASK_STATE_FAILED", None)


@pytest.mark.finds("agent blocker", "(blocker)")
async def test_an_agent_that_blocks_its_loop_delays_no_run_of_another_agent(
    start: Start, tmp_path: Path, record_property: Any
) -> None:
    node, gate = await start(A2A_LEASE_SECONDS="2", A2A_SWEEP_SECONDS="0.5"), pipe(tmp_path)
    async with client(node) as caller:
        early = [await caller.send("sleeper", seconds=3) for _ in range(50)]
        for task_id in early[-1:]:
            await caller.state(task_id, "TASK_STATE_WORKING")
        blocked = await caller.send("blocker", until=str(gate))
        await caller.state(blocked, "TASK_STATE_WORKING")
        began = time.monotonic()
        late = [await caller.send("sleeper", seconds=1) for _ in range(50)]
        tasks = [await ended(caller, task_id) for task_id in [*early, *late]]
        took = time.monotonic() - began
        assert state(await caller.get(blocked)) == "TASK_STATE_WORKING", "it is at it still"
        assert [state(task) for task in tasks] == ["TASK_STATE_COMPLETED"] * 100
        record_property("seconds for 100 runs of up to 3 s beside a blocked loop", round(took, 1))
        release(gate)
        assert state(await ended(caller, blocked)) == "TASK_STATE_COMPLETED"
    task = await node.shown(blocked)
    assert [run["outcome"] for run in task["runs"]] == ["completed"], "nobody else has taken it up"


def line_of(name: str, text: str, file: Path = AGENTS_FILE) -> str:
    """Return the file and line of the text in the function of a file in tests/faults."""
    lines = file.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if f"def {name}(" in line)
    return f"{file.name}:{next(number for number in range(first, len(lines)) if text in lines[number]) + 1}"


async def readiness(caller: Client) -> tuple[int, str]:
    response = await caller.http.get(f"{caller.node.base}/readyz")
    return response.status_code, response.text


@pytest.mark.finds("agent blocks-too-long", "(blocks-too-long)")
async def test_a_run_that_blocks_its_loop_is_named_and_fails_at_its_timeout(start: Start, tmp_path: Path) -> None:
    node, gate = await start(A2A_LEASE_SECONDS="2", A2A_SWEEP_SECONDS="0.5"), pipe(tmp_path)
    where = line_of("pipe", "os.open")
    async with client(node) as caller:
        blocked = await caller.send("blocks-too-long", until=str(gate))
        await node.logs("blocks its event loop")
        code, text = await readiness(caller)
        assert (code, f"agent blocks-too-long at {where} (task {blocked})" in text) == (200, True), text
        neighbour = await caller.send("blocks-too-long")
        assert state(await ended(caller, neighbour)) == "TASK_STATE_COMPLETED", "on another loop"
        task = await ended(caller, blocked)
        assert words(task).endswith("its timeout of 2 s, in a call that blocks its event loop.")
        assert f"(task {blocked})" in (await readiness(caller))[1], "it is at it still"
        release(gate)
        await node.logs("no longer blocks its event loop")
        async with asyncio.timeout(PATIENCE):  # On a busy machine the loop of the neighbour may be late, too.
            while "runner:" in (await readiness(caller))[1]:  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.1)
        assert await caller.get(blocked) == task, "late words are refused"
    (run,) = (await node.shown(blocked))["runs"]
    assert where.partition(":")[2] in run["traceback"]
    assert "in blocks_too_long" in run["traceback"]


@pytest.mark.finds("agent hung", "(hung)")
async def test_a_worker_whose_threads_all_hang_says_so_and_ends_with_grace(plant: Plant) -> None:
    web = await plant.web()
    worker = await plant.worker(A2A_SYNC_SLOTS="2", A2A_HELPLESS_SECONDS="1", A2A_GRACE_SECONDS="300")
    gate = web.folder / "open"
    async with client(web) as caller:
        for _ in range(2):
            await caller.send("hung")
        other = await caller.send("sleeper", seconds=300, until=str(gate))
        await worker.logs(" 300 s to end")
        gate.touch()
        assert await worker.ended(PATIENCE) == 1
        assert "no thread for sync agents is left, 2 of 2 hang beyond their time (hung)" in worker.log
        assert state(await caller.get(other)) == "TASK_STATE_COMPLETED", "it had its grace"


@pytest.mark.finds("agent hung", "(hung)")
async def test_a_development_server_beyond_help_says_so_and_stays(start: Start) -> None:
    node = await start(A2A_SYNC_SLOTS="1")
    async with client(node) as caller:
        hung = await caller.send("hung")
        await ended(caller, hung)
        await node.logs("restart the process")
        code, text = await readiness(caller)
        assert (code, line_of("hung", "time.sleep") in node.log) == (503, True), text
        assert "no thread for sync agents is left, 1 of 1 hang beyond their time (hung)" in text
        assert state(await ended(caller, await caller.send("sleeper", seconds=0))) == "TASK_STATE_COMPLETED"
    (run,) = (await node.shown(hung))["runs"]
    assert "in hung" in run["traceback"]


@pytest.mark.finds("agent ignores-cancel", "(ignores-cancel)")
async def test_agents_that_ignore_cancellation_are_named_and_fail_in_time(start: Start) -> None:
    node = await start(A2A_ASYNC_SLOTS="2", A2A_GRACE_SECONDS="600", **HOSTILE)
    where = line_of("_ignore", "await asyncio.sleep", HOSTILE_FILE)
    async with client(node) as caller:
        late, canceled = await caller.send("ignores-cancel"), await caller.send("ignores-cancel-too")
        await caller.state(canceled, "TASK_STATE_WORKING")
        await caller.result("CancelTask", {"id": canceled})
        assert words(await ended(caller, late)) == "The agent took longer than its timeout of 1 s."
        await node.logs("no slot for async agents is left, 2 of 2 hang beyond their time (ignores-cancel")
        code, text = await readiness(caller)
        assert code == 503
        for name, task_id in (("ignores-cancel", late), ("ignores-cancel-too", canceled)):
            assert f"agent {name} at {where} (task {task_id}) did not return at its end" in text
    (run,) = (await node.shown(late))["runs"]
    assert (run["outcome"], "in ignores_cancel" in run["traceback"]) == ("failed", True), "not by the sweeper"
    assert await node.stop() == 0, "it is given no grace"


@pytest.mark.finds("agent ignores-cancel", "(ignores-cancel)")
async def test_an_agent_that_heeds_a_later_cancellation_frees_its_slot(start: Start) -> None:
    node = await start(A2A_ASYNC_SLOTS="1", **HOSTILE)
    async with client(node) as caller:
        await ended(caller, await caller.send("ignores-cancel", times=1))
        assert state(await ended(caller, await caller.send("sleeper", seconds=0))) == "TASK_STATE_COMPLETED"
    assert "keeps a slot for async agents. Let asyncio.CancelledError end it. It is at " in node.log


async def test_a_part_that_exits_fails_its_run_at_once_and_no_other(start: Start, tmp_path: Path) -> None:
    node, gate = await start(**HOSTILE), tmp_path / "open"
    async with client(node) as caller:
        neighbour = await caller.send("exits-apart", how="wait", until=str(gate))
        await caller.state(neighbour, "TASK_STATE_WORKING")
        for how, cause in EXITS.items():
            task = await ended(caller, await caller.send("exits-apart", how=how))
            assert words(task).startswith("The agent failed. Reference: ")
            (run,) = (await node.shown(task["id"]))["runs"]
            assert (run["outcome"], cause in run["traceback"], "in part" in run["traceback"]) == ("failed", True, True)
        gate.touch()
        assert state(await ended(caller, neighbour)) == "TASK_STATE_COMPLETED"
    assert [run["outcome"] for run in (await node.shown(neighbour))["runs"]] == ["completed"]


EXITS = {
    "exit": "SystemExit: 2",
    "interrupt": "KeyboardInterrupt",
    "stop": "SystemExit: An agent has called stop() of its event loop.",
}


@pytest.mark.finds("event loop of agent exits-apart")
async def test_the_runs_of_a_broken_loop_are_lost_and_the_next_get_another(start: Start, tmp_path: Path) -> None:
    node, gate = await start(A2A_ASYNC_SLOTS="2", **HOSTILE), tmp_path / "open"
    async with client(node) as caller:
        neighbour = await caller.send("exits-apart", how="wait", until=str(gate))
        await caller.state(neighbour, "TASK_STATE_WORKING")
        broken = await caller.send("exits-apart", how="break")
        for task_id in (broken, neighbour):
            assert words(await ended(caller, task_id)).startswith("The worker was lost while the agent was at work")
            assert [run["outcome"] for run in (await node.shown(task_id))["runs"]] == ["lost"]
        code, text = await readiness(caller)
        assert (code, "runner: the event loop of agent exits-apart ended" in text) == (200, True), text
        gate.touch()
        for _ in range(2):
            later = await caller.send("exits-apart", how="wait", until=str(gate))
            assert state(await ended(caller, later)) == "TASK_STATE_COMPLETED", "both slots are free"


@pytest.mark.slow
@pytest.mark.finds("agent hung-apart", "(hung-apart)")
async def test_a_forked_process_whose_run_hangs_is_replaced(plant: Plant) -> None:
    web = await plant.web()
    await plant.worker("--queues", "cpu", "--processes", "1", A2A_HELPLESS_SECONDS="1")
    async with client(web) as caller:
        hung = await ended(caller, await caller.send("hung-apart"))
        assert words(hung) == "The agent took longer than its timeout of 1 s."
        assert state(await ended(caller, await caller.send("burns", seconds=0))) == "TASK_STATE_COMPLETED"


@pytest.mark.finds("agent blocks-the-doors", "(blocks-the-doors)")
async def test_a_quick_agent_that_blocks_all_callers_is_named(start: Start) -> None:
    node = await start()
    async with client(node) as caller:
        await caller.result("SendMessage", {"message": inputs(seconds=4)}, agent="blocks-the-doors")
        sentence = f"quick agent blocks-the-doors at {line_of('blocks_the_doors', 'time.sleep')}"
        assert sentence in node.log
        code, text = await readiness(caller)
        assert (code, sentence in text) == (200, True), text


@pytest.mark.finds("agent ignores-its-end", "(ignores-its-end)")
async def test_a_quick_agent_that_ignores_its_end_is_answered_for_and_named(start: Start) -> None:
    node = await start(**HOSTILE)
    async with client(node) as caller:
        reply = await caller.result("SendMessage", {"message": inputs()}, agent="ignores-its-end")
        assert words(reply["task"]).startswith("A quick agent has 2 seconds")
        await node.logs("beyond its time; late runs: 1 (its calls are refused from 32 on)")
        name = f"quick agent ignores-its-end at {line_of('ignores_its_end', 'asyncio.sleep', HOSTILE_FILE)}"
        code, text = await readiness(caller)
        assert (code, f"doors: {name} (task {reply['task']['id']}) has gone on for" in text) == (200, True), text
    assert await node.stop() == 0, "it does not keep the process"


@pytest.mark.long
@pytest.mark.finds("agent blocker", "(blocker)")
async def test_at_the_default_lease_nobody_pays_for_a_call_that_blocks_longer(
    plant: Plant, record_property: Any
) -> None:
    """The lease is 30 s, the call blocks for 45 s: 100 innocents of another agent are at work all that time."""
    defaults = {"A2A_LEASE_SECONDS": "30", "A2A_SWEEP_SECONDS": "5"}
    web = await plant.web(**defaults)
    await plant.worker(**defaults)
    await plant.worker("--queues", "cpu", **defaults)  # A worker of another queue claims none of them, but sweeps.
    async with client(web) as caller:
        blocked = await caller.send("blocker", seconds=45)
        await caller.state(blocked, "TASK_STATE_WORKING")
        innocent = [await caller.send("sleeper", seconds=40) for _ in range(100)]
        tasks = [await ended(caller, task_id, 60) for task_id in innocent]
        assert [state(task) for task in tasks] == ["TASK_STATE_COMPLETED"] * 100
        assert state(await ended(caller, blocked, 60)) == "TASK_STATE_COMPLETED"
    runs = [run for task_id in [*innocent[:5], blocked] for run in (await web.shown(task_id))["runs"]]
    assert [run["outcome"] for run in runs] == ["completed"] * 6
    late = [_seconds(run) - 40 for run in runs[:5]]
    record_property("seconds by which innocents were late", round(max(late), 2))
    assert max(late) < 3 * 2, "none is late by more than two seconds, and some slack"


def _seconds(run: dict[str, Any]) -> float:
    began, end = (datetime.fromisoformat(run[name]) for name in ("started_at", "ended_at"))
    return (end - began).total_seconds()
