"""The door of the queue: a call that waits for its outcome keeps no other from its answer."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from redis import Redis

from tasks_app.zones import queue
from tasks_app.zones.carriers import NoAnswer
from tasks_app.zones.queue import Queue, QueueDoor
from tests.conftest import until
from tests.support import servers
from tests.zones.carriers import SECRET, loop_thread


class World(NamedTuple):
    """A door at work. It answers the call `slow` when its gate is open, and others at once."""

    door: QueueDoor
    way: Queue
    gate: threading.Event
    begun: threading.Event


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    # A broker in memory is asked again after that time, where Redis wakes its callers.
    monkeypatch.setattr(queue, "LOOK", 0.01)
    with at_work(f"memory://{uuid4().hex}", monkeypatch) as world:
        yield world


@contextmanager
def at_work(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Give a door at work on the broker of that address."""
    gate, begun = threading.Event(), threading.Event()

    async def answer(body: bytes, key: str, door: str) -> bytes:
        if body == b"slow":
            begun.set()
            await asyncio.to_thread(gate.wait)
        return body.upper()

    monkeypatch.setattr(queue, "answer", answer)
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


def test_an_answer_whose_caller_has_left_does_not_stay_in_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its caller was killed, or has sent the call again because the answer was late."""
    monkeypatch.setattr(queue, "PATIENCE", 0.0)
    with servers.redis() as url, Redis.from_url(url) as client, at_work(url, monkeypatch) as world:
        with pytest.raises(NoAnswer):
            asyncio.run(world.way.carry(b"slow"))
        world.begun.wait()
        world.gate.set()
        until(lambda: client.keys("taskdesk.zone.answer.*"), "the answer is in the queue of its caller")
        (key,) = client.keys("taskdesk.zone.answer.*")
        until(lambda: 0 < client.ttl(key) <= queue.LIFETIME, "the answer has an end")
