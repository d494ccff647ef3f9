"""A line in the log for each call, for whoever develops an agent: method, path, what was asked, status, duration."""

import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

log = logging.getLogger("tasks_app.calls")
refused = logging.getLogger("tasks_app.calls.refused")
"""The logger of refused calls. Strangers can cause any number of them, so tasks_app.process.log_throttle limits it."""
_METHOD = re.compile(rb'"method"\s*:\s*"([A-Za-z0-9_./]{1,64})"')
_CONTROL = re.compile(r"[^\x21-\x7e]")
PATH = 200

App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class CallLog:
    """An ASGI application around another, which serves HTTP."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        began, call = time.perf_counter(), _Call()

        async def received() -> Any:
            message = await receive()
            call.look(message)
            return message

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                call.status = message["status"]
            await send(message)

        try:
            await self.app(scope, received, sent)
        finally:
            path = _CONTROL.sub("?", scope["path"])[:PATH]
            (refused if 400 <= call.status < 500 else log).info(
                "%s %s%s %s %.3f s", scope["method"], path, call.asked, call.status or "no answer",
                time.perf_counter() - began, extra={"status_code": call.status},
            )  # fmt: skip


class _Call:
    """The facts of a call, gathered while it passes."""

    status = 0
    asked = ""
    """The method of JSON-RPC, with a space before it."""
    _read = False

    def look(self, message: Any) -> None:
        """Find the method in the first piece of the body: calls of a developer fit in one."""
        if self._read or message["type"] != "http.request":
            return
        self._read = True
        found = _METHOD.search(message.get("body", b""))
        self.asked = f" {found[1].decode()}" if found else ""
