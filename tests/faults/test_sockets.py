"""The order to stop, with WebSocket connections open: streams say how they end, and the process ends in time."""

import asyncio
from signal import SIGTERM

import pytest

from tests.faults.conftest import Start
from tests.faults.nodes import KEY
from tests.transports.websocket.door import bearer, call, dialled, frames_of, message, next_frame

pytestmark = pytest.mark.fault


async def test_an_order_to_stop_ends_streams_of_sockets_and_idle_sockets(start: Start) -> None:
    node = await start(A2A_GRACE_SECONDS="0.5")
    async with dialled(node.base, **bearer(KEY)) as busy, dialled(node.base, **bearer(KEY)) as idle:
        await idle.send(call(1, "GetTask", {"id": "none"}))
        await next_frame(idle)
        params = {"message": message(id="drained"), "metadata": {"agent": "sleeper"}}
        await busy.send(call("s", "SendStreamingMessage", params))
        first = await next_frame(busy)
        stopping = asyncio.ensure_future(node.stop(SIGTERM, 15))
        frames = [first, *await frames_of(busy)]
        assert await frames_of(idle) == []
        assert await stopping == 0, node.log
    assert (busy.close_code, idle.close_code) == (1012, 1012)
    assert frames[-1]["params"] == {"id": "s", "reason": "draining", "resume": True}
    assert "Traceback" not in node.log
    await node.start()
    async with dialled(node.base, **bearer(KEY)) as client:
        seen = frames[-2]["sequence"]
        await client.send(call(2, "SubscribeToTask", {"id": first["result"]["task"]["id"]}, afterSequence=seen))
        assert (await next_frame(client))["sequence"] == seen
