"""Each carrier, with an execution zone behind it: the agents of this process, at the end of each way."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from tasks_app.zones import queue
from tasks_app.zones.agentcore import AgentCore
from tasks_app.zones.carriers import Carrier
from tasks_app.zones.https import Https
from tasks_app.zones.in_process import InProcess, answer
from tasks_app.zones.queue import Queue, QueueDoor
from tests.conftest import PATIENCE

ARN = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/execution-Ab12"
PATH = f"/runtimes/{quote(ARN, safe='')}/invocations"
SIGNATURE = re.compile(
    r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-central-1/bedrock-agentcore/aws4_request, "
    r"SignedHeaders=[a-z0-9;-]*host[a-z0-9;-]*, Signature=[0-9a-f]{64}"
)
"""The form of a signature of AWS, version 4."""
SECRET = "a secret of both zones"


@contextmanager
def loop_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """Run the loop of the execution zone's doors."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def http_zone(loop: asyncio.AbstractEventLoop, key: str, log: list[dict[str, str]]) -> Iterator[str]:
    """Serve the execution zone over HTTP, and as AgentCore's API does: a signed call, and the key of the runtime."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            log.append({"path": self.path, **{name.lower(): value for name, value in self.headers.items()}})
            body = self.rfile.read(int(self.headers["Content-Length"]))
            own = self.headers["Authorization"].removeprefix("Bearer ")
            if own.startswith("AWS4"):
                own = key if SIGNATURE.fullmatch(own) and self.path == PATH else "nobody"
            work = asyncio.run_coroutine_threadsafe(answer(body, own, "http"), loop)
            content = work.result(PATIENCE)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def zone(
    kind: str, key: str, monkeypatch: pytest.MonkeyPatch, log: list[dict[str, str]] | None = None
) -> Iterator[Callable[[str], Carrier]]:
    """Open an execution zone behind one kind of carrier. Yields the carrier of a key; AgentCore has the zone's own."""
    with ExitStack() as stack:
        loop = stack.enter_context(loop_thread())
        if kind == "in-process":
            yield InProcess
        elif kind == "queue":
            # A broker in memory is asked again after that time, where Redis wakes its callers.
            monkeypatch.setattr(queue, "LOOK", 0.01)
            url = f"memory://{uuid4().hex}"
            door = QueueDoor(url, SECRET, loop)
            thread = threading.Thread(target=door.run)
            thread.start()
            try:
                yield lambda own: Queue(url, SECRET, own)
            finally:
                door.stopping.set()
                thread.join()
        else:
            url = stack.enter_context(http_zone(loop, key, [] if log is None else log))
            for name, value in (("ACCESS_KEY_ID", "AKIDEXAMPLE"), ("SECRET_ACCESS_KEY", "not one of AWS")):
                monkeypatch.setenv(f"AWS_{name}", value)
            monkeypatch.setenv("AWS_ENDPOINT_URL", url)
            yield (lambda own: AgentCore(ARN)) if kind == "agentcore" else lambda own: Https(url, own)
