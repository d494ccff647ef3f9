"""One HTTP exchange: a request, and its answer or the events of its stream. Faults of httpx become client errors.

This module repeats nothing, and knows no method.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import NamedTuple, cast

import httpx
from httpx_sse import EventSource, ServerSentEvent

from a2a.client.clock import Clock
from a2a.client.credentials import Credentials
from a2a.client.errors import (
    ClientError,
    ConnectionLost,
    ConnectionRefused,
    ConnectTimeout,
    InvalidResponse,
    Timeout,
    UntrustedServer,
)
from a2a.client.patience import Timeouts, seconds_until

EVENT_STREAM = "text/event-stream"
_FAULTS: tuple[tuple[type[httpx.HTTPError], type[ClientError], str], ...] = (
    (httpx.ConnectTimeout, ConnectTimeout, "no connection in time"),
    (httpx.PoolTimeout, ConnectTimeout, "no free connection in time"),
    (httpx.TimeoutException, Timeout, "no answer in time"),
    (httpx.ConnectError, ConnectionRefused, "no connection"),
    (httpx.UnsupportedProtocol, ConnectionRefused, "the address is not one of HTTP"),
    (httpx.DecodingError, InvalidResponse, "the answer is not compressed as its header says"),
    (httpx.TooManyRedirects, InvalidResponse, "the server sends calls elsewhere"),
    (httpx.HTTPError, ConnectionLost, "the connection was lost"),
)
"""The class and the words of each fault of httpx. The first match counts."""
_BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")
"""The bytes that end an event."""


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    media: str
    body: bytes
    retry_after: float | None
    """The seconds of the Retry-After header."""


class Exchange(NamedTuple):
    """A request."""

    verb: str
    url: str
    headers: dict[str, str]
    body: bytes | None = None
    anonymous: bool = False
    """True to send no credentials, because the address is not that of the agent."""

    @property
    def place(self) -> str:
        """The address for error messages, without its query."""
        return f"{self.verb} {self.url.partition('?')[0]}"


class Http:
    """The connections to a server, with the credentials, time limits and sizes of every exchange."""

    def __init__(
        self, client: httpx.AsyncClient, credentials: Credentials | None, timeouts: Timeouts, clock: Clock, largest: int
    ) -> None:
        self.client = client
        self.credentials = credentials
        self.timeouts = timeouts
        self.clock = clock
        self.largest = largest
        """The limit of bytes, for an answer and for one event of a stream."""

    async def fetch(self, exchange: Exchange, seconds: float) -> Answer:
        """Return the answer. Raises ClientError."""
        with_limit = httpx.Timeout(seconds, connect=min(self.timeouts.connect, seconds))
        try:
            async with asyncio.timeout(seconds), self._send(exchange, with_limit) as response:
                return await self._whole(response, exchange)
        except TimeoutError:
            raise Timeout(f"no answer within {seconds:g} seconds", where=exchange.place) from None

    @asynccontextmanager
    async def listen(self, exchange: Exchange) -> AsyncIterator[AsyncIterator[ServerSentEvent] | Answer]:
        """Open a stream of events. Return the answer in its place if the server sends no stream. Raises ClientError."""
        silence = self.timeouts.silence
        with_limit = httpx.Timeout(silence, connect=self.timeouts.connect)
        # The limit counts bytes between the ends of events, which compressed bytes do not have.
        exchange = exchange._replace(headers=exchange.headers | {"Accept-Encoding": "identity"})
        async with self._send(exchange, with_limit) as response:
            if response.headers.get("content-type", "").startswith(EVENT_STREAM) and response.is_success:
                response.stream = _Limited(response, self.largest, exchange.place)
                async with aclosing(EventSource(response).aiter_sse()) as events:
                    yield self._events(events, exchange)
            else:
                yield await self._whole(response, exchange)

    async def _events(
        self, events: AsyncIterator[ServerSentEvent], exchange: Exchange
    ) -> AsyncIterator[ServerSentEvent]:
        try:
            async for event in events:
                yield event
        except httpx.HTTPError as error:
            raise named(error, exchange.place) from error

    @asynccontextmanager
    async def _send(self, exchange: Exchange, limits: httpx.Timeout) -> AsyncIterator[httpx.Response]:
        credentials = None if exchange.anonymous else self.credentials
        headers = exchange.headers | (await credentials.headers() if credentials else {})
        request = self.client.build_request(
            exchange.verb, exchange.url, headers=headers, content=exchange.body, timeout=limits
        )
        try:
            response = await self.client.send(request, stream=True, follow_redirects=False)
        except httpx.HTTPError as error:
            raise named(error, exchange.place) from error
        except httpx.InvalidURL as error:
            raise ConnectionRefused(f"the address is not valid: {error}", where=exchange.place) from None
        try:
            if response.status_code == httpx.codes.UNAUTHORIZED and credentials:
                credentials.refused()
            yield response
        finally:
            await response.aclose()

    async def _whole(self, response: httpx.Response, exchange: Exchange) -> Answer:
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self.largest:
                    raise InvalidResponse(f"the answer has more than {self.largest} bytes", where=exchange.place)
        except httpx.HTTPError as error:
            raise named(error, exchange.place) from error
        wait = seconds_until(response.headers.get("retry-after"), self.clock)
        return Answer(response.status_code, response.headers.get("content-type", ""), bytes(body), wait)


class _Limited(httpx.AsyncByteStream):
    """The bytes of a stream of events, with a limit for each event."""

    def __init__(self, response: httpx.Response, largest: int, place: str) -> None:
        self._bytes = cast("httpx.AsyncByteStream", response.stream)
        self._largest = largest
        self._place = place

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, last = 0, b""
        async for chunk in self._bytes:
            size += len(chunk)
            ends = [at + len(blank) for blank in _BLANK_LINES if (at := (last + chunk).rfind(blank)) >= 0]
            if ends:
                size = len(last) + len(chunk) - max(ends)
            last = chunk[-3:]
            if size > self._largest:
                raise InvalidResponse(f"one event has more than {self._largest} bytes", where=self._place)
            yield chunk

    async def aclose(self) -> None:
        await self._bytes.aclose()


def named(error: httpx.HTTPError, place: str) -> ClientError:
    """Return the client's error for a fault of httpx."""
    if _is_about_certificates(error):
        return UntrustedServer(f"the certificate of the server is not valid: {error}", where=place)
    kind, words = next((kind, words) for fault, kind, words in _FAULTS if isinstance(error, fault))
    detail = f": {error}" if str(error) else ""
    return kind(f"{words}{detail}", where=place)


def _is_about_certificates(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
