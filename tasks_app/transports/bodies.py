"""The arrival of request bodies, with limits of bytes and seconds. Only callers with a key may send large bodies."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from a2a.errors import RateLimited, Unavailable
from tasks_app.limits.accounts import Holding, account
from tasks_app.process.asgi_extensions import COMPLETE
from tasks_app.transports.call import SMALL
from tasks_app.transports.http import Refusal, over_limit, too_large

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
STRANGERS = -1
"""The owner of bodies whose caller is not known. All strangers count as one owner."""


class Gone(Exception):
    """The client left before its request had arrived."""


class Intake:
    """One body. If it does not arrive at once, it counts in the account of its owner until release()."""

    def __init__(
        self,
        scope: Mapping[str, Any],
        receive: Receive,
        limit: int,
        seconds: float,
        owner_of: Callable[[bool, int], Awaitable[int]],
    ) -> None:
        self.scope, self.receive, self.limit, self.seconds = scope, receive, limit, seconds
        self.owner_of = owner_of
        """Returns the owner. If the first argument is true, it raises Refusal for a stranger. The second is the bytes
        that have arrived and are in no account yet."""
        self.owner: int | None = None
        self.weight = 0
        """Bytes in the account."""
        self.arrived = 0
        """Bytes that have arrived."""

    async def read(self) -> bytes:
        """Return the whole body. Raises Gone and Refusal.

        The status of a refusal is 413 as soon as the body is too large, 408 if it does not arrive in time, 401 for a
        large body without a key, and 429 or 503 if too much arrives at the same time.
        """
        if COMPLETE in self.scope.get("extensions", ()):
            return await self._complete()
        length = self._content_length()
        if length > self.limit:
            raise too_large()
        if length > SMALL:
            await self._weigh(length)  # Its wait, as of a stranger, takes nothing of the time for the body.
        try:
            async with asyncio.timeout(self.seconds):
                return await self._pieces()
        except TimeoutError:
            raise Refusal(408, f"the body did not arrive within {self.seconds:g} s") from None

    async def _complete(self) -> bytes:
        """Return a body that has arrived already. Most of these are too small to count."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body: bytes = message["body"]
        self.arrived = len(body)
        if len(body) > self.limit:
            raise too_large()
        if len(body) > SMALL:
            await self._weigh(len(body))
        return body

    async def _pieces(self) -> bytes:
        pieces: list[bytes] = []
        more = True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Gone
            pieces.append(message.get("body", b""))
            self.arrived += len(pieces[-1])
            if self.arrived > self.limit:
                raise too_large()
            more = message.get("more_body", False)
            if self.uncounted and (more or self.arrived > SMALL):
                await self._weigh(self.arrived)
        return b"".join(pieces)

    def _content_length(self) -> int:
        for name, value in self.scope["headers"]:
            if name == b"content-length" and value.isdigit():
                return int(value[:18])
        return 0

    async def _weigh(self, size: int) -> None:
        """Set the bytes in the account. Raises Refusal."""
        if self.owner is None or (self.owner == STRANGERS and size > SMALL):
            owner = await self.owner_of(size > SMALL, self.uncounted)
            self.release()  # A caller who is recognised only now has not taken what strangers have.
            self.owner = owner
        try:
            account.take(self.owner, "bodies", size - self.weight)
        except (RateLimited, Unavailable) as error:
            raise over_limit(error) from None
        self.weight = size

    @property
    def uncounted(self) -> int:
        """The bytes that have arrived and are in no account."""
        return max(0, self.arrived - self.weight)

    def take_weight(self) -> Holding | None:
        """Return the bytes in the account, which the taker gives back from then on."""
        weight, self.weight = self.weight, 0
        return Holding(account, self.owner, "bodies", weight) if weight else None

    def release(self) -> None:
        """Take the body out of the account."""
        if self.weight and self.owner is not None:
            account.give(self.owner, "bodies", self.weight)
            self.weight = 0


async def strangers(required: bool, size: int) -> int:
    """Return the owner of bodies for which no key is required."""
    return STRANGERS
