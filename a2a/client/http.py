"""One HTTP exchange: a request, and its answer or the events of its stream. Faults of httpx become client errors.

This module repeats nothing, and knows no method.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import NamedTuple

import httpx
from httpx_sse import EventSource, ServerSentEvent

from a2a.client.addresses import HTTP, check_address
from a2a.client.bodies import OFFERED, Bytes, check_values, decompressed, limited, raw
from a2a.client.clock import Clock
from a2a.client.credentials import Credentials
from a2a.client.errors import (
    ClientError,
    ConnectionLost,
    ConnectionRefused,
    ConnectTimeout,
    InvalidCall,
    InvalidResponse,
    LargeMessageLost,
    Timeout,
    UntrustedServer,
)
from a2a.client.patience import Timeouts, seconds_until
from a2a.client.room import Part, Room

EVENT_STREAM = "text/event-stream"
FAULTS = (httpx.HTTPError, ssl.SSLError)
"""The errors of a call. httpx maps no error of TLS after the handshake."""
RESETS = (httpx.ReadError, httpx.WriteError, ssl.SSLError)
"""The errors of a connection that was cut. An orderly end after the whole request is httpx.RemoteProtocolError."""
LARGE = 1_000_000
"""Bytes of a message from which on a cut connection may mean that the server takes no such message: the default of
A2A_BODY_BYTES."""
UNREADABLE = (httpx.InvalidURL, UnicodeError)
"""The errors of httpx about the address of a redirect, which it reads although it does not follow it."""
_FAULTS: tuple[tuple[type[Exception], type[ClientError], str], ...] = (
    (httpx.ConnectTimeout, ConnectTimeout, "no connection in time"),
    (httpx.PoolTimeout, ConnectTimeout, "no free connection in time"),
    (httpx.TimeoutException, Timeout, "no answer in time"),
    (httpx.ConnectError, ConnectionRefused, "no connection"),
    (httpx.TooManyRedirects, InvalidResponse, "the server sends calls elsewhere"),
    (httpx.HTTPError, ConnectionLost, "the connection was lost"),
    (ssl.SSLError, ConnectionLost, "the connection was lost"),
)
"""The class and the words of each fault. The first match counts."""


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
        self,
        client: httpx.AsyncClient,
        credentials: Credentials | None,
        timeouts: Timeouts,
        clock: Clock,
        largest: int,
        room: Room,
    ) -> None:
        self.client = client
        self.credentials = credentials
        self.timeouts = timeouts
        self.clock = clock
        self.largest = largest
        """The limit of bytes, for an answer and for one event of a stream."""
        self.room = room

    async def authentication(self) -> dict[str, str]:
        """Return the headers of the credentials. Raises ClientError."""
        headers = await self.credentials.headers() if self.credentials else {}
        for name, value in headers.items():
            # The libraries would refuse it with a message that shows the credentials.
            if not (value.isascii() and value.isprintable() and value == value.strip()):
                where = ": they end with a line end" if value.endswith(("\n", "\r")) else ""
                raise InvalidCall(
                    f"the credentials have a space or a character that the header {name} cannot have{where}"
                )
        return headers

    def refused(self, headers: Mapping[str, str]) -> None:
        """Drop credentials that the server has refused, if these headers are theirs."""
        if self.credentials:
            self.credentials.refused(headers)

    async def fetch(self, exchange: Exchange, seconds: float) -> Answer:
        """Return the answer. Raises ClientError."""
        with_limit = httpx.Timeout(seconds, connect=min(self.timeouts.connect, seconds))
        async with within(seconds, exchange.place), self._send(exchange, with_limit) as response:
            return await self._whole(response, exchange)

    @asynccontextmanager
    async def listen(self, exchange: Exchange) -> AsyncIterator[AsyncIterator[ServerSentEvent] | Answer]:
        """Open a stream of events. Return the answer in its place if the server sends no stream. Raises ClientError."""
        silence = self.timeouts.silence
        with_limit = httpx.Timeout(silence, connect=self.timeouts.connect)
        # A compressing server may hold events back.
        exchange = exchange._replace(headers=exchange.headers | {"Accept-Encoding": "identity"})
        async with self._send(exchange, with_limit) as response:
            if response.is_success and response.headers.get("content-type", "").lower().startswith(EVENT_STREAM):
                with self.room.part(exchange.place) as part:
                    self._prepare(response, part)
                    async with aclosing(EventSource(response).aiter_sse()) as events:
                        yield self._events(events, exchange)
            else:
                async with within(silence, exchange.place):
                    answer = await self._whole(response, exchange)
                yield answer

    def _prepare(self, response: httpx.Response, part: Part) -> None:
        """Let the events of a response be read within the limits, and as UTF-8 whatever its headers say."""
        source = raw(response)
        chunks = decompressed(source, response.headers, part.place)
        response.stream = Bytes(limited(chunks, self.largest, part), source)
        response.headers = httpx.Headers({"content-type": EVENT_STREAM})

    async def _events(
        self, events: AsyncIterator[ServerSentEvent], exchange: Exchange
    ) -> AsyncIterator[ServerSentEvent]:
        try:
            async for event in events:
                check_values(event.data, exchange.place)
                yield event
        except FAULTS as error:
            raise named(error, exchange.place) from error

    @asynccontextmanager
    async def _send(self, exchange: Exchange, limits: httpx.Timeout) -> AsyncIterator[httpx.Response]:
        check_address(exchange.url, HTTP)
        credentials = {} if exchange.anonymous else await self.authentication()
        headers = {"Accept-Encoding": OFFERED} | exchange.headers | credentials
        try:
            request = self.client.build_request(
                exchange.verb, exchange.url, headers=headers, content=exchange.body, timeout=limits
            )
        except (httpx.InvalidURL, UnicodeError) as error:
            raise InvalidCall(f"the address or a header is not valid: {error}", where=exchange.place) from None
        try:
            async with within(limits.read, exchange.place):
                response = await self.client.send(request, stream=True, follow_redirects=False)
        except FAULTS as error:
            # httpcore has already tried to read an early answer. A reset may have destroyed it.
            raise named(error, exchange.place, len(exchange.body or b"")) from error
        except UNREADABLE as error:
            raise InvalidResponse(f"the answer leads to no address: {error}", where=exchange.place) from None
        try:
            if response.status_code == httpx.codes.UNAUTHORIZED and credentials:
                self.refused(credentials)
            yield response
        finally:
            await response.aclose()

    async def _whole(self, response: httpx.Response, exchange: Exchange) -> Answer:
        try:
            with self.room.part(exchange.place) as part:
                content = await self._read(decompressed(raw(response), response.headers, part.place), part)
        except FAULTS as error:
            raise named(error, exchange.place) from error
        check_values(content, exchange.place)
        wait = seconds_until(response.headers.get("retry-after"), self.clock)
        return Answer(response.status_code, response.headers.get("content-type", ""), content, wait)

    async def _read(self, chunks: AsyncIterator[bytes], part: Part) -> bytes:
        body = bytearray()
        async for chunk in chunks:
            body += chunk
            if len(body) > self.largest:
                raise InvalidResponse(f"the answer has more than {self.largest} bytes", where=part.place)
            part.hold(len(body))
        return bytes(body)


@asynccontextmanager
async def within(seconds: float | None, place: str) -> AsyncIterator[None]:
    """Limit the time of what is done inside. Raises Timeout."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Timeout(f"no answer in time, which is {seconds:g} seconds", where=place) from None


def named(error: Exception, place: str, size: int = 0) -> ClientError:
    """Return the client's error for one of the FAULTS. The size is that of a request that has no answer yet."""
    if _is_about_certificates(error):
        return UntrustedServer(f"the certificate of the server is not valid: {error}", where=place)
    kind, words = next((kind, words) for fault, kind, words in _FAULTS if isinstance(error, fault))
    detail = f": {error}" if str(error) else ""
    if kind is ConnectionLost and isinstance(error, RESETS):
        return loss_of(f"{words}{detail}", place, size)
    return kind(f"{words}{detail}", where=place)


def loss_of(what: str, place: str, size: int) -> ConnectionLost:
    """Return the error of a connection that was cut while a message of so many bytes was sent."""
    if size <= LARGE:
        return ConnectionLost(what, where=place)
    guess = f"the message of {size} bytes may be larger than the server takes (A2A_BODY_BYTES there)"
    return LargeMessageLost(f"{what}: {guess}", where=place)


def _is_about_certificates(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
