"""The door of the queue: a call that waits for its outcome keeps no other from its answer."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from tasks_app.zones import queue
from tasks_app.zones.queue import Queue, QueueDoor
from tests.conftest import until
from tests.zones.carriers import SECRET, loop_thread


class World(NamedTuple):
    """A door at work. It answers the call `slow` when its gate is open, and others at once."""

    door: QueueDoor
    way: Queue
    gate: threading.Event
    begun: threading.Event


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    gate, begun = threading.Event(), threading.Event()

    async def answer(body: bytes, key: str, door: str) -> bytes:
        if body == b"slow":
            begun.set()
            await asyncio.to_thread(gate.wait)
        return body.upper()

    monkeypatch.setattr(queue, "answer", answer)
    # A broker in memory is asked again after that time, where Redis wakes its callers.
    monkeypatch.setattr(queue, "LOOK", 0.01)
    url = f"memory://{uuid4().hex}"
    with loop_thread() as loop:
        door = QueueDoor(url, SECRET, loop)
        thread = threading.Thread(target=door.run)
        thread.start()
        try:
            yield World(door, Queue(url, SECRET, "a key"), gate, begun)
        finally:
            gate.set()
            door.stopping.set()
            thread.join()


def test_a_call_that_waits_delays_no_other(world: World) -> None:
    async def story() -> None:
        slow = asyncio.ensure_future(world.way.carry(b"slow"))
        await asyncio.to_thread(world.begun.wait)
        assert await world.way.carry(b"quick") == b"QUICK"
        assert not slow.done()
        world.gate.set()
        assert await slow == b"SLOW"

    asyncio.run(story())
    assert not world.door.late


def test_a_door_that_stops_sends_the_answers_that_are_late(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    original = queue.wait

    def wait(works: Any, seconds: float | None = None) -> Any:
        if seconds is None:
            world.gate.set()  # The door has stopped, and waits for its late answers.
        return original(works, seconds)

    async def story() -> None:
        slow = asyncio.ensure_future(world.way.carry(b"slow"))
        await asyncio.to_thread(until, lambda: world.door.late, "the answer is late")
        monkeypatch.setattr(queue, "wait", wait)
        world.door.stopping.set()
        assert await slow == b"SLOW"

    asyncio.run(story())
