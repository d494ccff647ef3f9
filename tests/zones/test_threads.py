"""Calls of zones that block a thread cost other agents of their loop nothing."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from tasks_app.runner.places import Places
from tasks_app.zones import carriers
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


@pytest.mark.parametrize(
    ("open_carrier", "blocking"),
    [(lambda: Queue("memory://none", SECRET, ""), "_ask"), (lambda: AgentCore(ARN), "_invoke")],
    ids=["queue", "agentcore"],
)
def test_owners_whose_calls_wait_for_a_thread_take_turns(
    open_carrier: Callable[[], Carrier], blocking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carriers, "PLACES", Places(1))
    gate, begun = threading.Event(), list[bytes]()

    def block(body: bytes) -> bytes:
        begun.append(body)
        gate.wait()
        return body

    async def story() -> None:
        way = open_carrier()
        monkeypatch.setattr(way, blocking, block)
        owners = ["ann"] * 4 + ["bob"] * 2
        calls = [
            asyncio.ensure_future(way.carry(f"{owner}{place}".encode(), owner)) for place, owner in enumerate(owners)
        ]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*calls)

    asyncio.run(story())
    assert begun == [b"ann0", b"ann1", b"bob4", b"ann2", b"bob5", b"ann3"]
