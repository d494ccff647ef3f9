"""An HTTP client for URLs that callers choose, which enforces the policy (policy.py) at the moment of dialling.

A URL is checked twice: as it is written, and when it is dialled. Then its name is looked up once, every address in the
answer must be allowed, and one of exactly these addresses is dialled. So a name whose addresses change between check
and call (DNS rebinding) reaches nothing.
"""

import ssl
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpcore
import httpx

from tasks_app.outbound.policy import Blocked, resolve
from tasks_app.outbound.resolving import Lookups, calling

CONNECT_SECONDS = 5.0
MOST_READ = 131_072
"""Bytes read from one connection."""
MOST_HEAD = 65_536
"""Bytes read before the head of an answer has ended. They include all interim answers (1xx) before it: an endless row
of these keeps the loop busy, and no limit of httpx or of the time between two pieces ends it."""


class Crowded(Exception):
    """Raised when every address of a name has as many calls under way as it may have."""


def _admit_all(number: str) -> None:
    """Admit every call."""


arrival: ContextVar[Callable[[str], None]] = ContextVar("arrival", default=_admit_all)
"""A function that is called with an address before it is dialled. It raises Crowded to refuse the call."""


class Bounded(httpcore.AsyncNetworkStream):
    """A connection with a limit of bytes to read: at first that of a head."""

    def __init__(self, inner: httpcore.AsyncNetworkStream, most: int) -> None:
        self.inner = inner
        self.most = most
        self.left = min(most, MOST_HEAD)

    def admit_body(self) -> None:
        """Read on to the limit of a whole answer: the head is there."""
        self.left += max(0, self.most - MOST_HEAD)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self.left <= 0:
            raise httpcore.ReadError("the answer has too many bytes")
        try:
            piece = await self.inner.read(min(max_bytes, self.left), timeout)
        except ssl.SSLError as error:
            # httpcore maps the errors of the handshake of TLS, and none of those after it.
            raise httpcore.ReadError(f"TLS: {error.reason}") from error
        self.left -= len(piece)
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            await self.inner.write(buffer, timeout)
        except ssl.SSLError as error:
            raise httpcore.WriteError(f"TLS: {error.reason}") from error

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return Bounded(await self.inner.start_tls(ssl_context, server_hostname, timeout), self.most)

    def get_extra_info(self, info: str) -> Any:
        return self.inner.get_extra_info(info)


class Dialler(httpcore.AsyncNetworkBackend):
    """A network backend that connects to checked addresses only. TLS still verifies the name: httpcore does that."""

    def __init__(self, most_read: int = MOST_READ, lookups: Lookups = calling) -> None:
        self.inner = httpcore.AnyIOBackend()
        self.lookups = lookups
        self.most_read = most_read

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        last_error: Exception | None = None
        for number in await resolve(host, port, self.lookups):
            try:
                arrival.get()(number)
                stream = await self.inner.connect_tcp(number, port, timeout, local_address, socket_options)
                return Bounded(stream, self.most_read)
            except (httpcore.ConnectError, httpcore.ConnectTimeout, Crowded) as error:
                last_error = error
        raise last_error or httpcore.ConnectError("the name has no address")

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise Blocked("is a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await self.inner.sleep(seconds)


class Transport(httpx.AsyncHTTPTransport):
    """A transport whose connections are Bounded, and serve one call each.

    Its answers lead nowhere: httpx reads the address of a redirect although it does not follow it, and some addresses
    raise errors that are not those of httpx.
    """

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        connection: Bounded = response.extensions["network_stream"]
        connection.admit_body()
        response.headers.pop("Location", None)
        return response


def _no_cookies() -> CookieJar:
    """Return a jar that takes in nothing. The receivers of all callers share a client, and one would choose what the
    others of its domain are sent."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))


@cache
def authorities() -> ssl.SSLContext:
    """Return the certificates of the authorities that this process trusts: those of the system, or SSL_CERT_FILE.

    To read them takes 25 ms, which a client for each call would pay each time.
    """
    return ssl.create_default_context()


def client(
    *,
    seconds: float,
    verify: ssl.SSLContext | None = None,
    connections: int | None = None,
    most_read: int = MOST_READ,
    lookups: Lookups = calling,
) -> httpx.AsyncClient:
    """Return a client that checks and dials anew for every call.

    It follows no redirects, keeps no cookies, and uses no proxies from the environment, since a proxy would do the
    dialling. Call target() on the URL first. The time limit holds for each part of a call, not for all of it.
    """
    context = verify or authorities()
    transport = Transport(verify=context, trust_env=False)
    # httpx has no argument for a network backend. tests/outbound/test_names.py checks that this one is used.
    transport._pool = httpcore.AsyncConnectionPool(
        ssl_context=context,
        max_connections=connections,
        max_keepalive_connections=0,
        network_backend=Dialler(most_read, lookups),
    )
    return httpx.AsyncClient(
        transport=transport,
        cookies=_no_cookies(),
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(seconds, connect=CONNECT_SECONDS),
    )
