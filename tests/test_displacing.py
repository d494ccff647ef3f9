"""Connections that new ones replace when all are taken."""

from collections.abc import Iterator
from typing import Any

import pytest

from tasks_app.process.displacing import displace, waiting


class Connection:
    """A connection that is closed, or is not."""

    def __init__(self, *, closed: bool = False, unread: int = 0) -> None:
        self.transport: Any = self
        self.closed, self.unread = closed, unread

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.closed, self.unread = True, 0


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = dict(waiting)
    waiting.clear()
    yield
    waiting.clear()
    waiting.update(before)


def test_the_connection_that_has_waited_longest_is_displaced() -> None:
    first, second = Connection(), Connection()
    waiting.update({first: None, second: None})
    assert displace()
    assert (first.closed, second.closed, list(waiting)) == (True, False, [second])


def test_a_connection_that_is_closing_makes_no_room_by_being_displaced() -> None:
    closing, other = Connection(closed=True), Connection()
    waiting.update({closing: None, other: None})
    assert displace()
    assert other.closed
    assert not waiting


def test_a_connection_that_closes_once_its_client_has_read_is_displaced() -> None:
    closing, other = Connection(closed=True, unread=1), Connection()
    waiting.update({closing: None, other: None})
    assert displace()
    assert (closing.unread, other.closed) == (0, False)


@pytest.mark.parametrize("connections", [[], [Connection(closed=True)]], ids=["none", "one that is closing"])
def test_without_a_connection_that_waits_nothing_is_displaced(connections: list[Connection]) -> None:
    waiting.update(dict.fromkeys(connections))
    assert not displace()
