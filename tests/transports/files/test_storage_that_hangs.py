"""A storage that hangs costs each download a bounded wait, and a thread for as long as it hangs."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tasks_app.database.bridge import bridge
from tasks_app.files.storage import DoWithFiles
from tasks_app.transports import files as door
from tests.conftest import PATIENCE, until


class Content:
    """An open file whose reads end when its gate is open."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        self.gate = gate
        self.reading = threading.Event()
        self.closed = threading.Event()

    def seek(self, _: int) -> None:
        pass

    def read(self, size: int) -> bytes:
        self.reading.set()
        if self.gate is not None:
            self.gate.wait()
        return bytes(size)

    def close(self) -> None:
        self.closed.set()


class Disk:
    """A storage that opens its file when its gate is open."""

    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate
        self.opening = threading.Event()
        self.content = Content()

    def open(self, _: str) -> Content:
        self.opening.set()
        self.gate.wait()
        return self.content


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Give the gate of a storage, and two threads that read from it."""
    gate, threads = threading.Event(), ThreadPoolExecutor(2)
    monkeypatch.setattr(door, "THREADS", threads)
    monkeypatch.setattr(door, "SECONDS", 0.05)
    try:
        yield gate
    finally:
        gate.set()
        threads.shutdown()


@contextmanager
def no_answer() -> Iterator[None]:
    with pytest.raises(TimeoutError, match="A2A_FILE_STORAGE"):
        yield


async def whole(content: Content) -> bytes:
    reading = door.Reading(content, 0, 10)
    try:
        return b"".join([piece async for piece in reading.chunks()])
    finally:
        reading.close()


def test_a_download_waits_for_no_read_that_hangs(gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        hanging, good = [Content(gate), Content(gate)], Content()
        for content in hanging:
            with no_answer():
                await whole(content)
        for _ in hanging:
            door.THREADS.submit(gate.wait)  # A busy machine may have begun no read in time, and given it up.
        with no_answer():
            await whole(good)
        assert not good.reading.is_set()
        monkeypatch.setattr(door, "SECONDS", PATIENCE)
        gate.set()
        for content in (*hanging, good):
            await asyncio.to_thread(until, content.closed.is_set, "the file is closed after its last read")
        assert await whole(Content()) == bytes(10)

    asyncio.run(story())


def test_a_client_that_leaves_a_read_that_hangs_takes_one_thread(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "SECONDS", 60.0)

    async def story() -> None:
        hanging = Content(gate)
        work = asyncio.ensure_future(whole(hanging))
        await asyncio.to_thread(hanging.reading.wait)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        assert await whole(Content()) == bytes(10)
        assert not hanging.closed.is_set()
        gate.set()
        await asyncio.to_thread(until, hanging.closed.is_set, "the file is closed after its last read")

    asyncio.run(story())


def test_a_file_that_is_opened_too_late_is_closed(gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(gate)
    monkeypatch.setattr(door, "storage", lambda: disk)

    async def story() -> None:
        while not disk.opening.is_set():  # A busy machine may have no thread for it in time.
            with no_answer():
                await door._open("a")
        gate.set()
        await asyncio.to_thread(until, disk.content.closed.is_set, "the file is closed")

    asyncio.run(story())


def test_clients_that_are_slow_hold_no_thread(gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "SECONDS", PATIENCE)  # Nothing hangs here.

    async def story() -> None:
        slow = [door.Reading(Content(), 0, 2 * door.CHUNK).chunks() for _ in range(20)]
        for chunks in slow:
            assert await anext(chunks)
        assert await whole(Content()) == bytes(10)
        for chunks in slow:
            await chunks.aclose()

    asyncio.run(story())


def test_a_read_of_an_agent_that_hangs_holds_up_no_other(gate: threading.Event, lanes: None) -> None:
    reading = threading.Event()

    def hang() -> None:
        reading.set()
        gate.wait()

    async def story() -> None:
        hanging = asyncio.ensure_future(bridge.ask(DoWithFiles(hang)))
        await asyncio.to_thread(reading.wait)
        try:
            assert await asyncio.wait_for(bridge.ask(DoWithFiles(lambda: b"read")), 30) == b"read"
            assert not hanging.done()
        finally:
            gate.set()
        await hanging

    asyncio.run(story())
