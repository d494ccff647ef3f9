"""Bodies of requests while they arrive: counted in bytes and seconds, and kept for callers who have a key."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from a2a.errors import RateLimited, Unavailable
from tasks_app.callers.accounts import account
from tasks_app.process.connections import COMPLETE
from tasks_app.transports.call import SMALL
from tasks_app.transports.http import Refusal, too_large

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
STRANGERS = -1
"""The owner of bodies whose sender is not known: all strangers have one share."""


class Gone(Exception):
    """The client has left before its request was whole."""


class Intake:
    """One body. What does not come at once counts in the account of its owner until it is released."""

    def __init__(
        self, scope: Mapping[str, Any], receive: Receive, limit: int, seconds: float,
        owner_of: Callable[[bool], Awaitable[int]],
    ) -> None:  # fmt: skip
        self.scope, self.receive, self.limit, self.seconds = scope, receive, limit, seconds
        self.owner_of = owner_of
        """Who sends it; raises Refusal for a stranger if it must be known."""
        self.owner: int | None = None
        self.noted = 0
        """Bytes that are in the account."""

    async def read(self) -> bytes:
        """Return the whole body. Raises Refusal: 413 as soon as it is too large, 408 when it does not arrive, 401 for
        a large one without a key, 429 and 503 when too much is arriving; Gone."""
        if COMPLETE in self.scope.get("extensions", ()):
            return await self._complete()
        declared = self._declared()
        if declared > self.limit:
            raise too_large()
        try:
            async with asyncio.timeout(self.seconds):
                if declared > SMALL:
                    await self._note(declared)
                return await self._pieces()
        except TimeoutError:
            raise Refusal(408, f"the body did not arrive within {self.seconds:g} s") from None

    async def _complete(self) -> bytes:
        """Return a body that is there already: nothing is waited for, and most bodies are too small to count."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body: bytes = message["body"]
        if len(body) > self.limit:
            raise too_large()
        if len(body) > SMALL:
            await self._note(len(body))
        return body

    async def _pieces(self) -> bytes:
        pieces: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Gone
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self.limit:
                raise too_large()
            more = message.get("more_body", False)
            if size > self.noted and (more or size > SMALL):
                await self._note(size)
        return b"".join(pieces)

    def _declared(self) -> int:
        for name, value in self.scope["headers"]:
            if name == b"content-length" and value.isdigit():
                return int(value[:18])
        return 0

    async def _note(self, size: int) -> None:
        """Enter so many bytes in all into the account. Raises Refusal."""
        if self.owner is None or (self.owner == STRANGERS and size > SMALL):
            self.owner = await self.owner_of(size > SMALL)
        try:
            account.take(self.owner, "bodies", size - self.noted)
        except RateLimited as error:
            raise Refusal(429, "", error=error) from None
        except Unavailable as error:
            raise Refusal(503, "", error=error) from None
        self.noted = size

    def release(self) -> None:
        """Take the body out of the account again."""
        if self.noted and self.owner is not None:
            account.give(self.owner, "bodies", self.noted)
            self.noted = 0


async def strangers(must_be_known: bool) -> int:
    """Return the owner of bodies that nobody needs a key for."""
    return STRANGERS
