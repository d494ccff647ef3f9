"""Quick agents that end the event loop of all callers, on which they run."""

from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.faults.clients import client, envelope, inputs, listening, state, words
from tests.faults.conftest import Start
from tests.faults.nodes import HOSTILE

pytestmark = pytest.mark.fault


async def test_an_exit_inside_a_call_fails_that_call_and_nobody_else_notices(start: Start, tmp_path: Path) -> None:
    node, gate = await start(**HOSTILE), tmp_path / "open"
    talk = {"message": inputs(words=3_000, until=str(gate))}
    async with client(node) as caller, listening(caller, "SendStreamingMessage", talk, agent="talks") as listener:
        await listener.count(3)
        for _ in range(10):
            reply = await caller.result("SendMessage", {"message": inputs()}, agent="exits-in-a-subtask")
            assert state(reply["task"]) == "TASK_STATE_FAILED"
            assert words(reply["task"]).startswith("The agent failed. Reference: ")
        assert not listener.over, "the stream goes on"
        gate.touch()
        await listener.end()
        assert listener.frames[-1].state == "TASK_STATE_COMPLETED"
        assert (await caller.http.get(f"{node.base}/readyz")).status_code == 200
    assert "SystemExit(2)" in node.log
    assert await node.stop() == 0


async def test_a_server_that_ends_without_a_signal_says_so_by_its_exit_code(start: Start) -> None:
    node = await start(**HOSTILE)
    sending = {"message": inputs()}
    async with client(node) as caller:
        with suppress(httpx.TransportError):
            await caller.http.post(caller.url("cancels-everything"), content=envelope("SendMessage", sending))
    assert await node.ended() == 1
    assert "the server has ended without a signal" in node.log
