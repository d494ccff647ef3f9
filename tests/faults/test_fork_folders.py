"""The folder that Python makes for the socket of a fork server goes with the process that started the server."""

import signal
from pathlib import Path

import pytest

from tests.faults.clients import client, ended, pipe
from tests.faults.conftest import Plant, Start
from tests.faults.nodes import ISOLATED

pytestmark = pytest.mark.fault


def folders_in(path: Path) -> list[Path]:
    return list(path.glob("pymp-*"))


@pytest.mark.parametrize("signals", [1, 2], ids=["clean", "at once"])
async def test_a_server_that_stops_leaves_no_folder(start: Start, tmp_path: Path, signals: int) -> None:
    node = await start(TMPDIR=str(tmp_path), A2A_GRACE_SECONDS="300", **ISOLATED)
    async with client(node) as caller:
        await ended(caller, await caller.send("apart-function"))
        assert folders_in(tmp_path)
        if signals == 2:
            await caller.state(await caller.send("takes-its-time", until=str(pipe(tmp_path))), "TASK_STATE_WORKING")
            node.tell(signal.SIGTERM)
            await node.logs("no new work")
        assert await node.stop(signal.SIGTERM) == signals - 1
    assert not folders_in(tmp_path)


@pytest.mark.parametrize("arguments", [(), ("--processes", "1")], ids=["threads", "processes"])
async def test_a_worker_that_stops_leaves_no_folder(plant: Plant, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    web = await plant.web(**ISOLATED)
    worker = await plant.worker(*arguments, TMPDIR=str(tmp_path), **ISOLATED)
    async with client(web) as caller:
        await ended(caller, await caller.send("apart-function"))
    assert folders_in(tmp_path)
    assert await worker.stop(signal.SIGTERM) == 0
    assert not folders_in(tmp_path)
    assert "Traceback" not in worker.log
