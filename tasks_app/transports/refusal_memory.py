"""The memory of requests that wait for their early refusal, or for the look-up of their credential."""

import asyncio
from collections.abc import Mapping
from itertools import islice
from typing import Any

from tasks_app.process.answering import Whole
from tasks_app.process.asgi_extensions import CONNECTION

MOST_BYTES = 16_000_000
"""Bytes that the requests which wait may take, with those behind them on their connections. With more, a connection
with many of them is dropped."""
LOOK = 32
"""Requests among which the one with most bytes is looked for: the newest, and those that wait longest."""

Answer = asyncio.Future[Whole | None]


class RefusalMemory:
    """The requests that wait, on the loop of this process. Each connection has one at most."""

    def __init__(self) -> None:
        self._begin_anew(None)

    def _begin_anew(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop = loop
        self.size = 0
        self.waiting: dict[Answer, tuple[int, Any]] = {}
        """The bytes and the connection of each request."""

    def hold(self, answer: Answer, scope: Mapping[str, Any]) -> None:
        """Count a request, by its scope, until the future of its answer is done."""
        if (loop := answer.get_loop()) is not self.loop:
            self._begin_anew(loop)
        if (connection := scope.get("extensions", {}).get(CONNECTION)) is not None:
            # Not at once, because the same read of the connection may bring further requests.
            loop.call_soon(self._weigh, answer, connection)

    def _weigh(self, answer: Answer, connection: Any) -> None:
        if answer.done() or answer.get_loop() is not self.loop:
            return
        self.waiting[answer] = size, _ = connection.size, connection
        self.size += size
        answer.add_done_callback(self._release)
        while self.size > MOST_BYTES:
            newest = next(reversed(self.waiting))
            self._drop(max([*islice(self.waiting, LOOK), newest], key=lambda one: self.waiting[one][0]))

    def _drop(self, answer: Answer) -> None:
        """Drop a request with its connection."""
        _, connection = self.waiting[answer]
        connection.transport.abort()
        answer.cancel()
        self._release(answer)

    def _release(self, answer: Answer) -> None:
        size, _ = self.waiting.pop(answer, (0, None))
        self.size -= size


memory = RefusalMemory()
"""The requests of this process."""
