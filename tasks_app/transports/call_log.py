"""A log line for each call, for developers of agents: verb, path, method, status, duration."""

import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

log = logging.getLogger("tasks_app.calls")
refusals = logging.getLogger("tasks_app.calls.refused")
"""The logger of refused calls. Strangers can cause any number of them, so tasks_app.process.log_throttle limits it."""
_METHOD = re.compile(rb'"method"\s*:\s*"([A-Za-z0-9_./]{1,64})"')
_CONTROL = re.compile(r"[^\x21-\x7e]")
MAX_PATH = 200
"""Characters of a path that are logged."""

App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class CallLog:
    """An ASGI application around another, which serves HTTP."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        start, call = time.perf_counter(), _Call()

        async def receive_and_look() -> Any:
            message = await receive()
            call.look(message)
            return message

        async def look_and_send(message: Any) -> None:
            if message["type"] == "http.response.start":
                call.status = message["status"]
                call.name(message["headers"])
            await send(message)

        try:
            await self.app(scope, receive_and_look, look_and_send)
        finally:
            path = _CONTROL.sub("?", scope["path"])[:MAX_PATH]
            (refusals if 400 <= call.status < 500 else log).info(
                "%s %s%s %s %.3f s%s",
                scope["method"],
                path,
                call.method,
                call.status or "no answer",
                time.perf_counter() - start,
                call.names,
                extra={"status_code": call.status},
            )


class _Call:
    """The facts of a call, collected while its messages pass."""

    status = 0
    method = ""
    """The method of JSON-RPC, after a space."""
    names = ""
    """The agent and the request id of an answer that names both, after a space."""
    _has_body = False

    def name(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Find the agent in the headers of an answer, and the id of the request."""
        values = dict(headers)
        if agent := values.get(b"x-agent-id"):
            self.names = f" {agent.decode()} {values.get(b'x-request-id', b'').decode()}"

    def look(self, message: Any) -> None:
        """Find the method in the first piece of the body, which is the whole body of most calls in development."""
        if self._has_body or message["type"] != "http.request":
            return
        self._has_body = True
        match = _METHOD.search(message.get("body", b""))
        self.method = f" {match[1].decode()}" if match else ""
