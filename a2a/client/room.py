"""The room for large answers that are still arriving: the clients that share it hold at most so many bytes together."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from sys import maxsize

from a2a.client.errors import NoRoom

SMALL = 65_536
"""Bytes of an answer, or of one event of a stream, that take no room."""


class Room:
    """Bytes that clients may hold together, on any thread. An answer that is larger than all of it is read alone."""

    def __init__(self, most: int = maxsize) -> None:
        self.most = most
        self.amount = 0
        self.lock = threading.Lock()

    @contextmanager
    def part(self, place: str) -> Iterator["Part"]:
        """Give the part of one answer for the length of the block. The place is for errors."""
        part = Part(self, place)
        try:
            yield part
        finally:
            part.hold(0)


class Part:
    """The bytes that one answer holds."""

    def __init__(self, room: Room, place: str) -> None:
        self.room = room
        self.place = place
        self.size = 0

    def hold(self, size: int) -> None:
        """Hold so many bytes from now on. Raises NoRoom if there is no room, so that the call is repeated."""
        size = size if size > SMALL else 0
        if size == self.size:
            return
        with self.room.lock:
            others = self.room.amount - self.size
            if size > self.size and others and others + size > self.room.most:
                raise NoRoom(
                    f"other large answers are still arriving, and all of them may have {self.room.most} bytes together",
                    where=self.place,
                )
            self.room.amount, self.size = others + size, size
