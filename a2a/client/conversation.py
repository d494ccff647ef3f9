"""The chunks of a shared stream on the client's side: an iterator that survives its connections.

The server numbers the chunks without gaps. A connection that breaks is resumed after the last chunk.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Self

from a2a.client.answers import SharedStream
from a2a.client.bodies import STALE, check_use
from a2a.client.clock import Clock
from a2a.client.errors import ClientError, SharedStreamClosed, StreamLost, Timeout
from a2a.client.link import Link
from a2a.client.patience import Retries
from a2a.requests import FollowSharedStream
from a2a.shared_streams import ChunkDocument


class Conversation:
    """The chunks of a shared stream, as an asynchronous iterator. It ends when the stream is closed.

    Use it with `async with` if you leave it before its end.
    """

    def __init__(
        self, link: Callable[[], Awaitable[Link]], request: FollowSharedStream, retries: Retries, clock: Clock
    ) -> None:
        self._link = link
        self._request = request
        self._retries = retries
        self._clock = clock
        self._chunks = self._follow()
        self._frames = 0
        """The number of events on this connection."""
        self._pause = 0.0
        """The pause between two connections that the server requests, in seconds."""
        self.stream: SharedStream | None = None
        """The shared stream as of the last connection; None before the first."""
        self.last_id = None if request.after is None else str(request.after)
        """The number of the last chunk, from which another iterator can go on later."""

    def __aiter__(self) -> AsyncIterator[ChunkDocument]:
        return self._chunks

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave the shared stream. It goes on, and so does the caller's part in it."""
        await self._chunks.aclose()

    async def _follow(self) -> AsyncGenerator[ChunkDocument, None]:
        fruitless = 0
        while True:
            lost = None
            try:
                async with aclosing(self._connection()) as chunks:
                    async for chunk in chunks:
                        fruitless = 0
                        yield chunk
            except SharedStreamClosed:
                if self.stream is None:
                    raise
                return  # It was closed after its last chunk, which is here.
            except ClientError as error:
                lost = error
            if not (isinstance(lost, Timeout) and self._frames):
                # A quiet stream is no failure: its participants take long.
                fruitless += 1
            self._check(lost, fruitless)
            pause = max(min(self._pause, self._retries.longest), (lost and lost.retry_after) or 0.0)
            await self._clock.sleep(self._retries.pause(max(fruitless - 1, 0), self._clock, pause))

    async def _connection(self) -> AsyncGenerator[ChunkDocument, None]:
        """Yield the chunks of one connection. Raises ClientError."""
        self._frames = 0
        link = await self._link()
        async with link.hear(self._request, self.last_id) as events:
            stale = 0
            async for id, value, self._pause in events:
                self._frames += 1
                stale += 1
                check_use(stale, STALE, link.interface.url)
                if isinstance(value, SharedStream):
                    self.stream = value
                    self.last_id = id if id and id.isdecimal() else self.last_id
                elif self.last_id is None or value.seq > int(self.last_id):
                    self.last_id, stale = str(value.seq), 0
                    yield value

    def _check(self, lost: ClientError | None, fruitless: int) -> None:
        """Check whether to connect again. Raises the error of the connection, or StreamLost."""
        if lost is not None and not (lost.retryable and (lost.retry_after or 0.0) <= self._retries.longest):
            raise lost
        if fruitless > (self._retries.reconnects if self.stream else self._retries.times):
            if lost is not None and self.stream is None:
                raise lost
            why = f": {lost.what}" if lost else ""
            raise StreamLost(f"{fruitless - 1} reconnections to the shared stream brought nothing new{why}") from lost
