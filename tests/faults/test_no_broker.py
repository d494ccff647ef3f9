"""Without CELERY_BROKER_URL nothing dials a broker, nor anything else: every connection of the process is recorded."""

import asyncio
from pathlib import Path

import pytest

from tests.conftest import until
from tests.faults.clients import client, inputs, listening
from tests.faults.conftest import Start

pytestmark = pytest.mark.fault
RECORDER = """
import sys

def hook(event, arguments):
    if event == "socket.connect":
        with open({file!r}, "a") as file:
            file.write(f"{{arguments[1]!r}}\\n")

sys.addaudithook(hook)
"""


def recorder(folder: Path) -> tuple[Path, Path]:
    """Return a folder for PYTHONPATH, and the file into which a process that has it writes what it dials."""
    dialled, site = folder / "dialled", folder / "site"
    dialled.touch()
    site.mkdir()
    (site / "sitecustomize.py").write_text(RECORDER.format(file=str(dialled)))
    return site, dialled


async def test_without_a_broker_nothing_is_ever_dialled(start: Start, tmp_path: Path) -> None:
    site, dialled = recorder(tmp_path)
    node = await start(PYTHONPATH=str(site), A2A_SWEEP_SECONDS="0.2")
    async with client(node) as caller:
        params = {"message": inputs(pause=0.01, words=1)}
        async with listening(caller, "SendStreamingMessage", params, agent="story") as stream:
            await stream.end()
        await caller.state(await caller.send("once", seconds=0), "TASK_STATE_COMPLETED")
        answer = await caller.result("CancelTask", {"id": await caller.send("once")})
        assert answer["status"]["state"] == "TASK_STATE_CANCELED"
    assert await node.stop() == 0
    # The pipe to the processes of isolated agents is a socket with a path, on this machine.
    assert [line for line in dialled.read_text().splitlines() if not line.startswith("'/")] == []


async def test_the_recorder_of_connections_records_one(start: Start, tmp_path: Path) -> None:
    """The test above relies on this: with a broker the same process does dial it."""
    site, dialled = recorder(tmp_path)
    node = await start(PYTHONPATH=str(site), REDIS_URL="redis://127.0.0.1:9/0")
    async with client(node) as caller:
        await caller.send("once", seconds=0)
    await asyncio.to_thread(until, lambda: "('127.0.0.1', 9)" in dialled.read_text(), "it is recorded")
