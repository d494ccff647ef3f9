"""Connections that new ones replace when all are taken, so that strangers cannot lock others out by holding them.

A stranger can hold a connection only by letting the server wait: for a request, for the rest of its body, or for the
reading of an answer; or by a request that waits to begin (tasks_app/asgi/entrance.py), or for its refusal
(tasks_app/transports/pace.py).
"""

from typing import Any

waiting: dict[Any, None] = {}
"""Connections whose client the server waits for, and those of WebSocket whose handshake has no answer yet, the longest
wait first."""


def displace() -> bool:
    """Close the connection that has waited longest; return whether there was one."""
    while waiting:
        connection = next(iter(waiting))
        del waiting[connection]
        transport = connection.transport
        # One that is closing holds its place until its client has read what is left, which close() would wait for.
        if transport.get_write_buffer_size() or not transport.is_closing():
            transport.abort()
            return True
    return False
