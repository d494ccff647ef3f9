"""Agents in processes of their own: they work like others, can be killed, and fail no other agent."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.clients import PATIENCE, client, ended, inputs, message, pipe, release, state, words
from tests.faults.conftest import Start
from tests.faults.isolated_processes import (
    GRACE,
    LONG_GRACE,
    data_of,
    process_of,
    processes_of,
    wait_for_end,
)
from tests.faults.nodes import HEEDING, ISOLATED, Node

pytestmark = pytest.mark.fault
INTERRUPTS = """
import os, signal, sys
if any("multiprocessing.forkserver" in argument for argument in sys.orig_argv):
    os.kill(os.getpid(), signal.SIGINT)
"""
"""A module that Python imports at its start."""
MASKED = """
import subprocess
from a2a.agents import agent


@agent(isolation="process")
def masked(run):
    \"\"\"Says which signals a program that it starts does not hear.\"\"\"
    lines = subprocess.check_output(["cat", "/proc/self/status"], text=True).splitlines()
    signals = dict(line.split(":") for line in lines if line.startswith("Sig"))
    return {name: int(signals[name], 16) & 0x4002 for name in ("SigBlk", "SigIgn")}
"""
"""An agent. The number stands for SIGINT and SIGTERM."""


@pytest.fixture
async def node(start: Start) -> Node:
    settings = {"A2A_LEASE_SECONDS": "2", "A2A_SWEEP_SECONDS": "0.5", "A2A_SYNC_SLOTS": "4"}
    return await start(A2A_KILL_SECONDS=str(GRACE), **settings, **ISOLATED)


async def test_every_form_of_agent_works_in_a_process_of_its_own(node: Node) -> None:
    async with client(node) as caller:
        pids = {node.pid}
        function = data_of(await ended(caller, await caller.send("apart-function")))
        coroutine = data_of(await ended(caller, await caller.send("apart-coroutine", number=7)))
        assert coroutine["number"] == 7

        asked = await caller.send("apart-generator")
        await caller.state(asked, "TASK_STATE_INPUT_REQUIRED")
        files = [{"raw": "A" * 40_000, "filename": "a.bin"}, {"raw": "AAAA", "filename": "b.bin"}]
        more = message({"text": "this one"}, *files, taskId=asked)
        generator = (await caller.result("SendMessage", {"message": more}))["task"]
        parts = [part["data"] for artifact in generator["artifacts"] for part in artifact["parts"]]
        assert parts[0]["said"][-1].endswith("this one")
        assert parts[1] == {"bytes": [30_000, 3]}

        params = {"message": inputs(), "metadata": {"colour": "red"}, "configuration": {"returnImmediately": True}}
        task_id = (await caller.result("SendMessage", params, agent="apart-async-generator"))["task"]["id"]
        await caller.state(task_id, "TASK_STATE_WORKING")
        await caller.result(
            "SendMessage",
            {"message": message({"text": "psst"}, taskId=task_id), "configuration": {"returnImmediately": True}},
        )
        stream = data_of(await ended(caller, task_id))
        assert (stream["heard"], stream["metadata"]["colour"]) == ("psst", "red")
        pids |= {item["pid"] for item in (function, coroutine, parts[0], stream)}
    assert len(pids) == 5, "each in a process of its own"
    for pid in pids - {node.pid}:
        await wait_for_end(pid)


async def test_an_agent_that_stops_the_fork_server_holds_up_no_other(node: Node) -> None:
    async with client(node) as caller:
        task = await ended(caller, await caller.send("apart-stops-server", code=3))
        (run,) = (await node.shown(task["id"]))["runs"]
        assert "with the exit code 3." in run["traceback"]
        assert state(await ended(caller, await caller.send("apart-function"))) == "TASK_STATE_COMPLETED"


async def test_an_error_in_a_process_of_an_agent_is_told_as_elsewhere(node: Node) -> None:
    async with client(node) as caller:
        assert words(await ended(caller, await caller.send("apart-refuses", how="words"))) == "Not today."
        task = await ended(caller, await caller.send("apart-refuses", how="mistake"))
        assert words(task).startswith("The agent failed. Reference: ")
    (run,) = (await node.shown(task["id"]))["runs"]
    assert "RuntimeError: the mistake" in run["traceback"]
    assert "in apart_refuses" in run["traceback"]


FORGOTTEN = 'agent "apart-errs": run.status(...) does nothing by itself: did you forget "yield"?'


async def test_an_agent_in_its_own_process_knows_its_caller_and_mistakes_are_named(node: Node) -> None:
    async with client(node) as caller:
        for what, state, said in (
            ("yield", "TASK_STATE_FAILED", 'agent "apart-errs" gives a value of type object: '),
            ("keys", "TASK_STATE_FAILED", 'agent "apart-errs" gives what JSON cannot hold: dict key must be str'),
            ("ask", "TASK_STATE_INPUT_REQUIRED", FORGOTTEN),
            ("nothing", "TASK_STATE_COMPLETED", FORGOTTEN),
        ):
            task = await caller.state(await caller.send("apart-errs", what=what), state)
            assert data_of(task) == {"scopes": ["*"], "tenant": "default"}
            (run,) = (await node.shown(task["id"]))["runs"]
            assert f"tests/faults/isolated_agents.py:{run['traceback'].split(':')[1]}: {said}" in run["traceback"]
            assert "\n" not in run["traceback"]
            assert run["traceback"] in node.log


@pytest.mark.parametrize(
    ("agent", "values", "grace"),
    [("spins", {}, LONG_GRACE), ("spins-async", {}, GRACE), ("spins", {"stubborn": True}, GRACE)],
    ids=["sync", "async", "stubborn"],
)
async def test_a_cancel_ends_an_endless_loop_within_the_grace(
    start: Start, agent: str, values: dict[str, Any], grace: float, record_property: Any
) -> None:
    """An agent that heeds the order to stop ends long before its grace, and any other at the end of it."""
    node = await start(A2A_KILL_SECONDS=str(grace), **ISOLATED)
    async with client(node) as caller:
        task_id = await caller.send(agent, **values)
        pid = await process_of(caller, task_id)
        await caller.result("CancelTask", {"id": task_id})
        took = await wait_for_end(pid)
        record_property("seconds from the cancel to the end of the process", round(took, 2))
        assert took < LONG_GRACE
        assert state(await caller.get(task_id)) == "TASK_STATE_CANCELED"
    assert ("tidied up" in node.log) is (agent == "spins" and not values), (
        "an agent that heeds the order to stop may tidy up"
    )


async def test_an_agent_tidies_up_after_the_action_that_ends_its_run(node: Node) -> None:
    async with client(node) as caller:
        for how, expected in (("ask", "TASK_STATE_INPUT_REQUIRED"), ("reject", "TASK_STATE_REJECTED")):
            task = await caller.state(await caller.send("tidies-up", how=how), expected)
            await node.logs(f"tidied up after {how}")
            assert state(await caller.get(task["id"])) == expected
        await node.logs("its agent raised an error after its last action")


async def test_an_endless_loop_ends_at_its_timeout_and_its_slot_is_free(start: Start) -> None:
    node = await start(A2A_KILL_SECONDS="1", A2A_SYNC_SLOTS="1", **ISOLATED)
    async with client(node) as caller:
        task_id = await caller.send("spins-too-long")
        pid = await process_of(caller, task_id)
        assert words(await ended(caller, task_id)) == "The agent took longer than its timeout of 4 s."
        await wait_for_end(pid)
        assert state(await ended(caller, await caller.send("brief"))) == "TASK_STATE_COMPLETED"


LAST = {
    "segfault": "The process of the agent was ended by SIGSEGV.",
    "exit": "The process of the agent ended by itself, with the exit code 3.",
    "kill": "The process of the agent was ended by SIGKILL, perhaps by the kernel for want of memory.",
}


async def test_a_crash_is_a_failed_attempt_with_its_last_words_and_fails_nobody_else(
    node: Node, tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    async with client(node) as caller:
        others = [await caller.send("sleeper", seconds=300, until=str(gate)) for _ in range(10)]
        others += [await caller.send("stubborn", seconds=3)]
        sent = {how: await caller.send("crashes", how=how) for how in LAST}
        for how, task_id in sent.items():
            text = words(await ended(caller, task_id))
            assert text.startswith("The agent's process crashed. Reference: ")
            (run,) = (await node.shown(task_id))["runs"]
            assert (run["outcome"], run["reference"]) == ("crashed", text.rpartition(" ")[2])
            assert LAST[how] in run["traceback"]
            assert f"last words before {how}" in run["traceback"]
        segfault = (await node.shown(sent["segfault"]))["runs"][0]["traceback"]
        assert "in crashes" in segfault, "with its stack"
        gate.touch()
        for task_id in others:
            assert state(await ended(caller, task_id)) == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize("how", ["raises", "yields", "spends", "returns"])
async def test_a_fork_of_an_isolated_agent_does_nothing_for_its_run(node: Node, how: str) -> None:
    async with client(node) as caller:
        task = await ended(caller, await caller.send("forks", how=how))
        assert state(task) == "TASK_STATE_COMPLETED"
        (artifact,) = task["artifacts"]
        (part,) = artifact["parts"]
        assert part["data"] == {"status": 0 if how == "returns" else 256}


@pytest.mark.parametrize("how", ["goes on", "waits"])
async def test_an_agent_that_closes_its_descriptors_is_said_to_have_done_so(node: Node, how: str) -> None:
    async with client(node) as caller:
        task_id = await caller.send("closes-all", how=how)
        assert words(await ended(caller, task_id)).startswith("The agent's process crashed. Reference: ")
    (run,) = (await node.shown(task_id))["runs"]
    assert "the exit code 113: it has closed the pipe to its worker" in run["traceback"]


async def test_an_agent_that_crashed_is_called_again_as_often_as_it_may(node: Node) -> None:
    async with client(node) as caller:
        task_id = await caller.send("crashes-once")
        assert state(await ended(caller, task_id)) == "TASK_STATE_COMPLETED"
        busy = await caller.send("apart-is-busy")
        assert state(await ended(caller, busy)) == "TASK_STATE_COMPLETED"
    assert [run["outcome"] for run in (await node.shown(task_id))["runs"]] == ["crashed", "completed"]
    assert len((await node.shown(busy))["runs"]) == 3


async def test_an_agent_gets_no_more_memory_than_its_limit(node: Node) -> None:
    async with client(node) as caller:
        assert state(await ended(caller, await caller.send("greedy", megabytes=50))) == "TASK_STATE_COMPLETED"
        task = await ended(caller, await caller.send("greedy", megabytes=2000))
        assert words(task) == "The agent needed more than the 100 MB of memory that it may have."
    (run,) = (await node.shown(task["id"]))["runs"]
    assert "MemoryError" in run["traceback"]


async def test_a_killed_worker_leaves_no_process_of_an_agent_behind(node: Node) -> None:
    async with client(node) as caller:
        pids = [await process_of(caller, await caller.send("spins", stubborn=stubborn)) for stubborn in (True, False)]
    node.kill()
    for pid in pids:
        await wait_for_end(pid)


async def test_a_message_is_heard_when_the_agent_in_its_process_has_looked_at_it(node: Node, tmp_path: Path) -> None:
    blocked = pipe(tmp_path)
    async with client(node) as caller:
        task_id = await caller.send("apart-and-deaf", until=str(blocked))
        await process_of(caller, task_id)
        more = {"message": message({"text": "second"}, taskId=task_id), "configuration": {"returnImmediately": True}}
        await caller.result("SendMessage", more)
        release(blocked)
        task = await ended(caller, task_id)
        said = [part.get("text") for artifact in task["artifacts"] for part in artifact["parts"]]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert "second" in said, "the agent is called again with what it has not looked at"


async def test_a_process_that_takes_no_messages_in_is_ended_all_the_same(node: Node, tmp_path: Path) -> None:
    async with client(node) as caller:
        task_id = await caller.send("apart-and-deaf", until=str(pipe(tmp_path)))
        pid = await process_of(caller, task_id)
        os.kill(pid, signal.SIGSTOP)
        more = message({"text": "x" * 800_000}, taskId=task_id)
        await caller.result("SendMessage", {"message": more, "configuration": {"returnImmediately": True}})
        await asyncio.sleep(1.0)  # The message is in the pipe by now.
        await caller.result("CancelTask", {"id": task_id})
        await wait_for_end(pid)
        assert data_of(await ended(caller, await caller.send("apart-function"))), "its slot is free"


async def test_a_process_that_stops_in_the_middle_of_a_message_can_be_canceled(node: Node) -> None:
    async with client(node) as caller:
        task_id = await caller.send("stops-in-message")
        pid = await process_of(caller, task_id)
        await asyncio.sleep(1.0)  # It is stopped by now.
        await caller.result("CancelTask", {"id": task_id})
        assert await wait_for_end(pid) < LONG_GRACE
        assert data_of(await ended(caller, await caller.send("apart-function"))), "its slot is free"


async def test_a_crash_is_noticed_though_another_process_holds_the_pipe(node: Node) -> None:
    async with client(node) as caller:
        task_id = await caller.send("dies-in-message")
        await process_of(caller, task_id)
        began = time.monotonic()
        assert words(await ended(caller, task_id)).startswith("The agent's process crashed. Reference: ")
        assert time.monotonic() - began < LONG_GRACE
    (run,) = (await node.shown(task_id))["runs"]
    assert LAST["kill"] in run["traceback"]


async def test_a_result_of_more_bytes_than_a_task_may_hold_is_refused_in_the_process(start: Start) -> None:
    node = await start(A2A_TASK_FILE_BYTES="1000000", A2A_TASK_CHARACTERS="500000", **ISOLATED)
    async with client(node) as caller:
        task = await ended(caller, await caller.send("says-too-much", size=3_500_000))
        assert words(task) == "The agent has given more at once than a task may hold: 3,000,000 bytes."


async def test_a_signal_to_the_whole_service_leaves_an_isolated_run_its_grace(start: Start, tmp_path: Path) -> None:
    node, blocked = await start(A2A_GRACE_SECONDS="300", **ISOLATED), pipe(tmp_path)
    async with client(node) as caller:
        task_id = await caller.send("takes-its-time", until=str(blocked))
        child = await process_of(caller, task_id)
        for pid in service_of(node.pid, child):
            os.kill(pid, signal.SIGTERM)
        await node.logs("1 run has 300 s to end")
        release(blocked)
        assert await node.ended(PATIENCE) == 0
    task = await node.shown(task_id)
    assert ([run["outcome"] for run in task["runs"]], task["state"]) == (["completed"], "completed")


async def test_ctrl_c_while_the_processes_of_agents_are_prepared_is_for_the_server_alone(
    nodes: list[Node], tmp_path: Path
) -> None:
    """The process that forks them hears of it while Python itself starts. Programs of agents heed signals as usual."""
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTS)
    (tmp_path / "masked.py").write_text(MASKED)
    node = Node(tmp_path / "data", A2A_AGENTS_DIR=str(tmp_path), PYTHONPATH=str(tmp_path))
    node.command = [sys.executable, "-c", HEEDING, *node.command]
    nodes.append(node)
    await node.start()
    async with client(node) as caller:
        task = await ended(caller, await caller.send("masked"))
    assert data_of(task) == {"SigBlk": 0, "SigIgn": 0}
    assert await node.stop() == 0
    assert "Traceback" not in node.log


def service_of(server: int, child: int) -> set[int]:
    """Return the processes of a control group: the child, the server, and those between and beside them."""
    parents = {pid: parent_of(pid) for pid in (int(path.name) for path in Path("/proc").glob("[0-9]*"))}
    return {server, child} | {pid for pid, parent in parents.items() if parent == server}


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


async def test_nothing_that_an_isolated_agent_starts_outlives_it(node: Node) -> None:
    async with client(node) as caller:
        canceled, killed, stopped = [await caller.send("starts-processes") for _ in range(3)]
        groups = {task_id: await processes_of(caller, task_id) for task_id in (canceled, killed, stopped)}
        await caller.result("CancelTask", {"id": canceled})
        for pid in groups[canceled]:
            await wait_for_end(pid)
        os.kill(groups[killed][0], signal.SIGKILL)
        for pid in groups[killed]:
            await wait_for_end(pid)
        os.kill(groups[stopped][0], signal.SIGSTOP)
        node.kill()
        for pid in groups[stopped]:
            await wait_for_end(pid)
