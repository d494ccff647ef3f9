"""The progress of the reader on a connection of any door: it must take what is written for it within a time."""

import fcntl
import termios
from array import array
from typing import Any

from django.conf import settings

MIN_PROGRESS = 16_384
"""Bytes that a reader must take within A2A_WRITE_SECONDS while more wait for it."""


class Progress:
    """The progress of one reader, by the clock of the loop."""

    __slots__ = ("in_buffer", "in_kernel", "transport")

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.in_buffer: tuple[float, int] | None = None
        """The time of the last look at a slow reader, and the bytes left to write then; None for a reader that keeps
        up."""
        self.in_kernel: tuple[float, int] | None = None
        """Like `in_buffer`, for an answer that is wholly in the kernel: the time, and the bytes not acknowledged
        then."""

    def pause(self, now: float) -> None:
        """Begin to watch: the write buffer is full."""
        self.in_buffer = now, self.transport.get_write_buffer_size()

    def resume(self) -> None:
        """End the watch: the write buffer has room again."""
        self.in_buffer = None

    def is_too_slow(self, now: float) -> bool:
        """Return whether the reader took less than MIN_PROGRESS bytes within A2A_WRITE_SECONDS.

        Only a paused or closing connection gets no further bytes, so that the bytes left show what the reader took.
        """
        if self.in_buffer is None:
            if self.transport.is_closing():
                self.pause(now)
            return False
        since, remaining = self.in_buffer
        if now - since < settings.A2A_WRITE_SECONDS:
            return False
        self.pause(now)
        return remaining - self.in_buffer[1] < MIN_PROGRESS

    def is_unacknowledged(self, now: float, *, idle: bool) -> bool:
        """Return whether the reader took less than MIN_PROGRESS bytes of an answer that is wholly in the kernel.

        The kernel holds megabytes. To the server such a connection is idle, and idle connections may stay for long.
        """
        queued = _count_unacknowledged(self.transport) if idle else 0
        if not queued:
            self.in_kernel = None
            return False
        if self.in_kernel is None:
            self.in_kernel = now, queued
            return False
        since, remaining = self.in_kernel
        if now - since < settings.A2A_WRITE_SECONDS:
            return False
        self.in_kernel = now, queued
        return remaining - queued < MIN_PROGRESS


def _count_unacknowledged(transport: Any) -> int:
    """Return the bytes that the kernel has sent or queued and the client has not acknowledged; 0 if it cannot tell."""
    answer = array("i", [0])
    try:
        fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, answer)
    except OSError:
        return 0
    return answer[0]
