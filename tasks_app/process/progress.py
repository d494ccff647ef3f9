"""The progress of the reader on a connection of any door: it must take what is written for it within a time."""

import fcntl
import socket
import struct
import termios
from array import array
from typing import Any

from django.conf import settings

MIN_PROGRESS = 16_384
"""Bytes that a reader must take within A2A_WRITE_SECONDS while more wait for it."""
ACKNOWLEDGED, ACKNOWLEDGED_AT = struct.Struct("=Q"), 120
"""The field `tcpi_bytes_acked` of Linux's `struct tcp_info`, and its place in bytes."""


class Progress:
    """The progress of one reader, by the clock of the loop."""

    __slots__ = ("in_buffer", "in_kernel", "transport")

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.in_buffer: tuple[float, int] | None = None
        """The time of the last look at a slow reader, and the bytes left to write then; None for a reader that keeps
        up."""
        self.in_kernel: tuple[float, int, int] | None = None
        """Like `in_buffer`, for answers that are wholly in the kernel: the time, the bytes not acknowledged then, and
        all bytes acknowledged before."""

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
        """Return whether the reader took less than MIN_PROGRESS bytes of answers that are wholly in the kernel.

        The kernel holds megabytes. To the server such a connection is idle, and idle connections may stay for long. A
        reader whose connection is in use may have a little left to acknowledge at every look, but each time another
        answer.
        """
        counts = _count_kernel(self.transport) if idle else None
        if counts is None or not counts[0]:
            self.in_kernel = None
            return False
        queued, acknowledged = counts
        if self.in_kernel is None:
            self.in_kernel = now, queued, acknowledged
            return False
        since, due, before = self.in_kernel
        if now - since < settings.A2A_WRITE_SECONDS:
            return False
        self.in_kernel = now, queued, acknowledged
        return acknowledged - before < min(due, MIN_PROGRESS)


def _count_kernel(transport: Any) -> tuple[int, int] | None:
    """Return the bytes that the client has not acknowledged yet, sent or queued, and all that it has; None if the
    kernel cannot tell."""
    queued = array("i", [0])
    connection = transport.get_extra_info("socket")
    try:
        fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, queued)
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, ACKNOWLEDGED_AT + ACKNOWLEDGED.size)
        return queued[0], *ACKNOWLEDGED.unpack_from(info, ACKNOWLEDGED_AT)
    except (OSError, AttributeError, struct.error):  # not Linux, or a kernel before 4.1
        return None
