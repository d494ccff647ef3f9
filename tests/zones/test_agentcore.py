"""The answers of AgentCore: what a runtime sends without end costs a bounded time and a bounded memory."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tasks_app.zones import agentcore
from tasks_app.zones.agentcore import AgentCore
from tasks_app.zones.carriers import NoAnswer
from tests.zones.carriers import ARN

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"


@contextmanager
def runtime(monkeypatch: pytest.MonkeyPatch, send: Callable[[socket.socket], None]) -> Iterator[None]:
    """Run a stand-in for AWS whose answers have the body that a function sends. The end of a connection ends them."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.close_connection = True
            with suppress(OSError):
                self.request.sendall(HEAD)
                send(self.request)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    for name, value in (("ACCESS_KEY_ID", "AKIDEXAMPLE"), ("SECRET_ACCESS_KEY", "not one of AWS")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def drip(connection: socket.socket) -> None:
    """Send a byte now and then, until the client has left."""
    while True:
        connection.sendall(b" ")
        threading.Event().wait(0.02)


def carry() -> bytes:
    return asyncio.run(AgentCore(ARN).carry(b"{}"))


def test_an_answer_has_a_limit_of_bytes(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.A2A_TASK_CHARACTERS, settings.A2A_TASK_FILE_BYTES = 40_000, 60_000
    with runtime(monkeypatch, lambda connection: connection.sendall(bytes(200_000))):
        assert len(carry()) == 200_000
    with runtime(monkeypatch, lambda connection: connection.sendall(bytes(200_001))), pytest.raises(NoAnswer) as error:
        carry()
    sentence = str(error.value)
    assert all(word in sentence for word in (ARN, "200000 bytes", "A2A_TASK_FILE_BYTES", "answer less"))


def test_an_answer_that_comes_byte_by_byte_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agentcore, "SECONDS", 0.3)
    with runtime(monkeypatch, drip), pytest.raises(NoAnswer, match="ReadTimeout"):
        carry()
