"""Asks the ASGI application in this process, as a server would."""

import asyncio
import gzip
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import unquote

from tasks_app.process.log_throttle import LogThrottle
from tests.conftest import PATIENCE
from tests.fuzz.calls import Call


class Answer(NamedTuple):
    """The answer to a call."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def media(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip()


class Hung(Exception):
    """Raised for a call without an answer in time."""


async def ask(application: Any, call: Call, key: str) -> Answer:
    """Return the answer to a call with the key, unless the call has another one. Raises Hung."""
    sent: list[dict[str, Any]] = []
    messages = [{"type": "http.request", "body": call.body, "more_body": False}]
    ended = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    try:
        async with asyncio.timeout(PATIENCE):
            await application(scope_of(call, key), receive, send)
    except TimeoutError:
        raise Hung(f"no answer within {PATIENCE:g} s, only {sent}") from None
    finally:
        ended.set()
    start = next(message for message in sent if message["type"] == "http.response.start")
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start.get("headers", ())}
    return Answer(start["status"], headers, inflated(headers, b"".join(message.get("body", b"") for message in sent)))


def inflated(headers: dict[str, str], content: bytes) -> bytes:
    """Return the content of an answer without its compression."""
    return gzip.decompress(content) if headers.get("content-encoding") == "gzip" and content else content


def scope_of(call: Call, key: str) -> dict[str, Any]:
    """Return the scope of a call, as uvicorn makes it."""
    path, _, query = call.path.partition("?")
    fields = {"Host": "testserver", "Authorization": f"Bearer {key}", "Content-Length": str(len(call.body))}
    fields |= dict(call.headers)
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": call.verb,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in fields.items()],
        "client": ("127.0.0.1", 40_000),
        "server": ("127.0.0.1", 8_000),
    }


class _Troubles(logging.Handler):
    """Collects the lines of the log that tell of a fault of the server."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        # Django reports a foreign Host header as an error of this kind, in one line.
        is_of_caller = record.name.startswith("django.security.")
        if record.exc_info or (record.levelno >= logging.ERROR and not is_of_caller):
            self.lines.append(self.format(record))


@contextmanager
def troubles() -> Iterator[list[str]]:
    """Give the list that errors and tracebacks in the log are added to."""
    handler = _Troubles()
    handler.addFilter(LogThrottle())  # as in the log of a server
    logging.getLogger().addHandler(handler)
    try:
        yield handler.lines
    finally:
        logging.getLogger().removeHandler(handler)
