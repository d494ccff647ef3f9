"""HTTP/1.1 by hand, over a socket."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.conftest import PATIENCE, Server


@contextmanager
def wire(server: Server) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        yield connection


def head(first: str, *fields: str, host: str = "Host: 127.0.0.1") -> bytes:
    return "\r\n".join([first, *([host] if host else []), *fields, "", ""]).encode()


def received(connection: socket.socket) -> bytes:
    """Return everything until the server closes."""
    data = b""
    with suppress(ConnectionError):
        while chunk := connection.recv(65_536):
            data += chunk
    return data


def status(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:200]
    return int(answer.split()[1])
