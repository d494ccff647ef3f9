"""The progress of readers, by the bytes they take."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from tasks_app.process.progress import MIN_PROGRESS, Progress, _count_kernel
from tests.conftest import until

LONGEST_DELAY = 0.3
"""Seconds: more than Linux delays an acknowledgement."""


class Pipe:
    """A transport with so many bytes left to write."""

    def __init__(self, left: int) -> None:
        self.left = left

    def get_write_buffer_size(self) -> int:
        return self.left

    def is_closing(self) -> bool:
        return False


def test_a_reader_must_take_some_bytes_in_time(settings: Any) -> None:
    settings.A2A_WRITE_SECONDS = 10.0
    pipe = Pipe(100_000)
    progress = Progress(pipe)
    assert not progress.is_too_slow(0.0)
    progress.pause(0.0)
    assert not progress.is_too_slow(9.9)
    pipe.left -= MIN_PROGRESS
    assert not progress.is_too_slow(10.0)
    pipe.left -= MIN_PROGRESS - 1
    assert not progress.is_too_slow(19.9)
    assert progress.is_too_slow(20.0)
    progress.resume()
    assert not progress.is_too_slow(90.0)


class Wire:
    """A transport over a real connection, and its reader."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.reader = socket.create_connection(listener.getsockname())
            self.writer, _ = listener.accept()
        self.reader.setblocking(False)
        self.writer.setblocking(False)

    def get_extra_info(self, name: str) -> socket.socket:
        return self.writer

    def fill(self) -> None:
        """Write more than the reader's side of the kernel can hold."""
        until(self._is_full, "the kernel takes no more")

    def _is_full(self) -> bool:
        """Write as much as the kernel takes. Return whether some of it stays on this side."""
        with suppress(BlockingIOError):
            while True:
                self.writer.send(bytes(65_536))
        before = _count_kernel(self)
        time.sleep(LONGEST_DELAY)
        return before == _count_kernel(self) and before is not None and before[0] > 0

    def is_empty(self) -> bool:
        """Read what there is, and return whether nothing more is to come."""
        with suppress(BlockingIOError):
            while self.reader.recv(65_536):
                pass
        counts = _count_kernel(self)
        assert counts is not None
        return counts[0] == 0


@pytest.fixture
def connection() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.reader.close()
    wire.writer.close()


def test_a_reader_who_took_what_it_had_may_have_another_answer_to_take(settings: Any, connection: Wire) -> None:
    """A connection in use has something to acknowledge at every look."""
    settings.A2A_WRITE_SECONDS = 10.0
    progress = Progress(connection)
    connection.fill()
    assert not progress.is_unacknowledged(0.0, idle=True)
    until(connection.is_empty, "all is acknowledged")
    connection.fill()
    assert not progress.is_unacknowledged(10.0, idle=True)
    # The kernel may make room for a few bytes more, long after it has been still.
    looks = count(20.0, 10.0)
    until(lambda: progress.is_unacknowledged(next(looks), idle=True), "the reader takes nothing")
    assert not progress.is_unacknowledged(next(looks), idle=False)
