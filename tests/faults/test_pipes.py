"""Commands whose reader leaves early, as `head` does, end without a traceback."""

import asyncio
import signal
import subprocess

import pytest

from tests.faults.clients import client, message
from tests.faults.conftest import Start
from tests.faults.nodes import ROOT, Node, command, environment

pytestmark = pytest.mark.fault


def left(node: Node, *arguments: str, after: int = 0) -> tuple[int, bytes]:
    """Return the exit code and the complaints of a command whose reader leaves after so many bytes."""
    buffered = environment(node.folder, **node.settings, PYTHONUNBUFFERED="")  # as in a shell
    with subprocess.Popen(
        command(*arguments), cwd=ROOT, env=buffered, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        assert len(process.stdout.read(after)) == after
        process.stdout.close()
        complaints = process.stderr.read()
        return process.wait(60), complaints


async def test_a_list_whose_reader_leaves_ends_without_a_word(start: Start) -> None:
    node = await start()
    async with client(node) as caller:
        said = message({"text": "x" * 300_000})  # more than a pipe holds
        task_id = (await caller.result("SendMessage", {"message": said}))["task"]["id"]
    code = 128 + signal.SIGPIPE
    assert await asyncio.to_thread(left, node, "tasks", "list") == (code, b"")
    assert await asyncio.to_thread(left, node, "exchanges", task_id, "--bodies", after=600) == (code, b"")
    assert await asyncio.to_thread(left, node, "tasks", "cancel", task_id) == (
        code,
        b"CommandError: 1 of 1 not canceled.\n",
    )
