"""Files and crashes: bytes without a task are swept, and no task is without its bytes. Large files cost no memory."""

import asyncio
import base64
import os
from pathlib import Path

import httpx
import pytest

from tests.conftest import NO_TLS, until
from tests.faults.clients import PATIENCE, Client, client
from tests.faults.conftest import SHORT, Start
from tests.faults.outages import outage
from tests.support.chapters.files import files_of

pytestmark = pytest.mark.fault
MEGABYTE = 1_000_000
BIG = os.urandom(200_000)


def stored_files(folder: Path) -> set[Path]:
    return {path for path in folder.glob("*/*") if path.is_file()}


async def link_of(caller: Client, task_id: str) -> str:
    """Return the link to the file that the agent makes, once it has."""
    async with asyncio.timeout(PATIENCE):
        while not (found := files_of(await caller.get(task_id))):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.02)
    return str(found[0]["url"])


def sending(content: bytes, agent: str) -> dict[str, object]:
    part = {"raw": base64.b64encode(content).decode(), "filename": "a.bin"}
    said = {"messageId": "m", "role": "ROLE_USER", "parts": [part]}
    return {"message": said, "metadata": {"agent": agent}}


async def test_a_process_that_dies_between_file_and_row_leaves_bytes_that_are_swept(
    start: Start, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "kill").touch()
    storage = {
        "A2A_FILE_STORAGE": "tests.faults.storages.Fatal",
        "A2A_FILE_STORAGE_OPTIONS": f'{{"location": "{folder}"}}',
    }
    node = await start(**storage, **SHORT)
    async with client(node) as caller:
        with pytest.raises(httpx.TransportError):
            await caller.result("SendMessage", sending(BIG, "maker"))
    await node.ended()
    (lost,) = stored_files(folder)
    assert lost.read_bytes() == BIG
    # As if it were days old.
    old = folder / "20200101"
    await asyncio.to_thread(lambda: lost.parent.rename(old))
    await node.start()
    async with client(node) as caller:
        assert (await caller.result("ListTasks", {}))["tasks"] == []
        task = (await caller.result("SendMessage", sending(BIG, "maker")))["task"]
        assert task["artifacts"][0]["parts"][0]["text"] == f"{len(BIG)} "
        await asyncio.to_thread(until, lambda: not old.exists(), "the folder and what is in it are gone")
        (file,) = files_of(task["history"])
        assert (await caller.http.get(file["url"])).content == BIG
    assert len(stored_files(folder)) == 1


async def test_a_file_and_its_link_outlive_the_process_that_made_them(start: Start) -> None:
    node = await start()
    async with client(node) as caller:
        task_id = await caller.send("maker", size=300_000, pause=60.0)
        async with httpx.AsyncClient(verify=NO_TLS) as browser:
            file = await link_of(caller, task_id)
            node.kill()
            await node.start()
            # The link was signed with the secret of the folder, which outlives the process.
            again = (await browser.get(file)).content
    assert len(again) == 300_000


async def test_a_file_of_a_result_is_stored_when_the_database_is_back(
    start: Start, postgres_server: str, postgres: str, tmp_path: Path
) -> None:
    node, gate = await start(DATABASE_URL=postgres), tmp_path / "open"
    async with client(node) as caller:
        task_id = await caller.send("maker", size=300_000, until=str(gate))
        await caller.state(task_id, "TASK_STATE_WORKING")
        with outage(postgres_server, postgres):
            gate.touch()
            await node.logs("a file was not stored yet")
        task = await caller.state(task_id, "TASK_STATE_COMPLETED")
        (file,) = files_of(task)
        assert len((await caller.http.get(str(file["url"]))).content) == 300_000
    assert [run["outcome"] for run in (await node.shown(task_id))["runs"]] == ["completed"]
    assert "Traceback" not in node.log


async def test_a_large_file_costs_about_its_size_once_and_its_download_nothing(start: Start) -> None:
    node = await start()
    async with client(node) as caller:
        await caller.send("maker", size=MEGABYTE)
        await caller.completed(1)
        before = node.rss()
        task_id = await caller.send("maker", size=20 * MEGABYTE)
        await caller.completed(2)
        url = await link_of(caller, task_id)
        for _ in range(3):
            await caller.get(task_id)
        assert node.rss() - before < 60 * MEGABYTE
        between = node.rss()
        most, size = 0.0, 0
        async with httpx.AsyncClient(verify=NO_TLS) as browser, browser.stream("GET", url) as response:
            async for chunk in response.aiter_bytes():
                size += len(chunk)
                most = max(most, node.rss() - between)
        assert size == 20 * MEGABYTE
        assert most < 10 * MEGABYTE
