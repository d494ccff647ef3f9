"""Calls of zones that block a thread cost other agents of their loop nothing."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from tasks_app.zones.agentcore import AgentCore
from tasks_app.zones.carriers import Carrier
from tasks_app.zones.queue import Queue
from tests.zones.carriers import ARN, SECRET

MANY = 64
"""More calls than there are threads of any kind."""


@pytest.mark.parametrize(
    ("open_carrier", "blocking"),
    [(lambda: Queue("memory://none", SECRET, ""), "_ask"), (lambda: AgentCore(ARN), "_invoke")],
    ids=["queue", "agentcore"],
)
def test_calls_without_an_answer_leave_the_threads_of_agents_alone(
    open_carrier: Callable[[], Carrier], blocking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()

    def block(body: bytes) -> bytes:
        gate.wait()
        return body

    async def story() -> None:
        way = open_carrier()
        monkeypatch.setattr(way, blocking, block)
        calls = [asyncio.ensure_future(way.carry(b"a")) for _ in range(MANY)]
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(5):
                assert await asyncio.to_thread(lambda: "an agent") == "an agent"
        finally:
            gate.set()
            assert await asyncio.gather(*calls) == [b"a"] * MANY

    asyncio.run(story())
