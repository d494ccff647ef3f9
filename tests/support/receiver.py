"""A receiver of webhooks on loopback that answers as it is told, and keeps what it was sent."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import orjson

Json = dict[str, Any]


class Reply(NamedTuple):
    """One answer."""

    status: int = 204
    headers: Mapping[str, str] = {}
    until: threading.Event | None = None
    """Not before this is set."""
    body: bytes = b""


class Got(NamedTuple):
    """One delivery, as it came in."""

    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Json:
        found: Json = orjson.loads(self.raw)
        return found

    @property
    def seq(self) -> int:
        return int(self.headers["a2a-event-sequence"])


class Receiver(ThreadingHTTPServer):
    """Answers from a script; when that is at its end, or for other paths, with the default."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: str) -> None:
        super().__init__((address, 0), _Answer)
        self.got: list[Got] = []
        self.script: list[Reply] = []
        self.default = Reply()
        self.paths: dict[str, Reply] = {}
        self.asked: list[Got] = []
        """The handshakes, as they came in."""
        self.agreement = Reply(405)
        """The answer to handshakes."""
        self.lock = threading.Lock()
        self.at_once = self.most_at_once = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def at(self, path: str) -> list[Got]:
        with self.lock:
            return [got for got in self.got if got.path == path]

    def wait(self, number: int, path: str | None = None, seconds: float = 60.0) -> list[Got]:
        """Return the first so many, once they are there."""
        ends = time.monotonic() + seconds

        def found() -> list[Got]:
            return list(self.got) if path is None else self.at(path)

        while len(found()) < number:
            assert time.monotonic() < ends, f"{len(found())} of {number} deliveries within {seconds:g} s"
            time.sleep(0.01)
        return found()

    def next_reply(self, path: str) -> Reply:
        if path in self.paths:
            return self.paths[path]
        return self.script.pop(0) if self.script else self.default


class _Answer(BaseHTTPRequestHandler):
    server: Receiver

    def do_OPTIONS(self) -> None:
        server = self.server
        with server.lock:
            server.asked.append(Got(self.path, {k.lower(): v for k, v in self.headers.items()}, b""))
            reply = server.agreement
        if reply.until is not None:
            reply.until.wait(30)
        self.answer(reply)

    def do_POST(self) -> None:
        server, size = self.server, int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(size)
        with server.lock:
            server.got.append(Got(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            reply = server.next_reply(self.path)
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
        if reply.until is not None:
            reply.until.wait(30)
        with server.lock:
            server.at_once -= 1
        self.answer(reply)

    def answer(self, reply: Reply) -> None:
        try:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)
        except OSError:
            pass  # The sender has closed the connection.

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def receiver(address: str = "127.0.0.1") -> Iterator[Receiver]:
    with Receiver(address) as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield found
        finally:
            for reply in (found.default, found.agreement, *found.script, *found.paths.values()):
                if reply.until is not None:
                    reply.until.set()
            found.shutdown()
            thread.join(5)
