"""An endpoint of a language model that answers as a test says."""

import json
import socket
import struct
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from a2a.requests import GetTask
from a2a.types import Part, Task
from tasks_app import models
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask, shown, words

KEY = "sk-the-key-that-nobody-may-see"
INSIDE = "an internal sentence of the endpoint"
DONE = "data: [DONE]\n\n"
BUSY = "has too much to do or its quota is used up; try again later"
LINK = Part(url="https://example.org/a.txt", media_type="text/plain")
"""A model is not shown what is behind it."""


def piece(text: str | None = None, reason: str | None = None) -> str:
    delta = {} if text is None else {"content": text}
    value = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


class Call:
    """One call that the endpoint got, and the way to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.handler = handler
        self.path = handler.path
        self.headers = handler.headers
        self.body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        self.go_on = threading.Event()
        """Set by a test that has seen enough."""
        self.closed = threading.Event()
        """The client has closed the connection."""

    def begin(self, status: int = 200, kind: str = "text/event-stream") -> None:
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", kind)
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()

    def write(self, *texts: str | bytes) -> None:
        for text in texts:
            data = text if isinstance(text, bytes) else text.encode()
            self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        self.handler.wfile.write(b"0\r\n\r\n")

    def answer(self, *texts: str | bytes, status: int = 200, kind: str = "text/event-stream") -> None:
        self.begin(status, kind)
        self.write(*texts)
        self.end()

    def wait(self) -> None:
        assert self.go_on.wait(PATIENCE)

    def wait_for_close(self) -> None:
        """Reads, which gives nothing more, until the other side closes."""
        self.handler.connection.settimeout(PATIENCE)
        if self.handler.connection.recv(1) == b"":
            self.closed.set()

    def reset(self) -> None:
        """Break the connection as a crash does."""
        self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.handler.connection.close()
        self.handler.close_connection = True


Script = Callable[[Call], None]


def talks(*texts: str | bytes, **more: Any) -> Script:
    return lambda call: call.answer(*texts, **more)


class Endpoint:
    """The server; what it does with a call is set by the test."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.script: Script = talks(piece("Hello"), DONE)
        self.faults: list[BaseException | None] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.close_connection = True
                call = Call(self)
                endpoint.calls.append(call)
                endpoint.script(call)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = False  # closing waits for them

            def handle_error(self, *_: Any) -> None:
                fault = sys.exc_info()[1]
                if not isinstance(fault, ConnectionError):  # A client that has heard enough hangs up.
                    endpoint.faults.append(fault)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self) -> "Endpoint":
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for call in self.calls:
            call.go_on.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def task_of(person: Person, task_id: str) -> Task:
    return shown(ask(person, GetTask(id=task_id)))


def sentence(task: Task) -> str:
    """Return what a failed task says, after a check that nothing inside is shown."""
    assert task.status.state == "failed"
    assert task.status.message
    wire = words(task)
    assert KEY not in wire
    assert INSIDE not in wire
    assert "127.0.0.1" not in wire
    run = models.Run.objects.get(task_id=task.id)
    assert (run.outcome, run.reference) == ("failed", "")
    assert KEY not in run.traceback
    return task.status.message.text
