"""Connections that new ones replace when all are taken, so that strangers cannot lock others out by holding them."""

from typing import Any

idle: dict[Any, None] = {}
"""Connections on which no request is being answered, and those of WebSocket whose handshake has no answer yet, longest
idle first."""


def displace() -> bool:
    """Close the connection that has been idle longest; return whether there was one."""
    while idle:
        connection = next(iter(idle))
        del idle[connection]
        if not connection.transport.is_closing():
            connection.transport.close()
            return True
    return False
