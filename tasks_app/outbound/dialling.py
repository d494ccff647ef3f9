"""Calls to URLs that callers choose: the policy, and an HTTP client that enforces it at the moment of dialling.

A URL is checked twice: as it is written, and when it is dialled. Then its name is looked up once, every address in the
answer must be allowed, and one of exactly these addresses is dialled. So a name whose addresses change between check
and call (DNS rebinding) reaches nothing.
"""

import asyncio
import re
import ssl
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, NamedTuple

import httpcore
import httpx
from django.conf import settings

from tasks_app.outbound.resolving import Answers, Lookups, calling, registering

LOOKUP_SECONDS = 5.0
CONNECT_SECONDS = 5.0
MOST_READ = 131_072
"""Bytes read from one connection."""
MOST_HEAD = 65_536
"""Bytes read before the head of an answer has ended. They include all interim answers (1xx) before it: an endless row
of these keeps the loop busy, and no limit of httpx or of the time between two pieces ends it."""
PORTS_FROM = 1_024
"""The lowest port that may be called, besides those of HTTP: lower ports belong to other protocols."""
_URL = re.compile(
    r"(?P<scheme>[a-z]+)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?(?:[/?#][\x21-\x7e]*)?",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
"""The last label of a host that some resolvers read as an unusual spelling of an IPv4 address, such as 0x7f.1."""
_NEVER = tuple(
    map(
        ip_network,
        (
            "192.0.0.0/24",  # protocol assignments, one of them a cloud's metadata; Python calls some of them global
            "192.88.99.0/24",  # relays into 6to4
            "168.63.129.16/32",  # a cloud's metadata at a public address
            "3fff::/20",  # documentation
            # IPv6 addresses that contain an IPv4 address, which would have to be checked as well
            *("2001::/32", "2002::/16"),
        ),
    )
)
_GIVEN_OUT = ip_network("2000::/3")
"""The part of IPv6 that is assigned to the public network. Python calls the unassigned rest global as well."""

Address = IPv4Address | IPv6Address


class Blocked(Exception):
    """Raised for a URL that must not be called. The sentence says why, and may be shown to the caller who chose it."""


class Inside(Blocked):
    """Raised for a name that leads to an address that must not be called."""


class Unknown(Exception):
    """Raised for a name that cannot be resolved at the moment."""


class Crowded(Exception):
    """Raised when every address of a name has as many calls under way as it may have."""


def _admit_all(number: str) -> None:
    """Admit every call."""


arrival: ContextVar[Callable[[str], None]] = ContextVar("arrival", default=_admit_all)
"""A function that is called with an address before it is dialled. It raises Crowded to refuse the call."""


class Target(NamedTuple):
    """The host and port of a call."""

    host: str
    port: int


def target(url: str) -> Target:
    """Return the host and port of a URL, if it may be called as it is written. Raises Blocked."""
    if not url.isascii():
        raise Blocked("must be written in ASCII: names as xn--…, other characters as %XX")
    match = _URL.fullmatch(url)
    if match is None:
        raise Blocked("must be an absolute https URL without user name, spaces or backslashes")
    scheme, host = match["scheme"].lower(), match["host"].strip("[]").lower()
    _check_host(host, bracketed=match["host"].startswith("["))
    listed = _is_listed(host)
    if scheme != "https" and not (scheme == "http" and (listed or settings.A2A_OUTBOUND_LOOPBACK)):
        raise Blocked("must begin with https://")
    usual = 443 if scheme == "https" else 80
    port = int(match["port"] or usual)
    if not 0 < port <= 65_535 or not (listed or port == usual or port >= PORTS_FROM):
        raise Blocked(f"must have port 443 or one from {PORTS_FROM} to 65535")
    # httpx parses the URL again for the call. Its host must be the one that was checked here.
    try:
        parsed = httpx.URL(url)
        parsed.host.encode()
    except httpx.InvalidURL:
        raise Blocked("must be an absolute https URL") from None
    except UnicodeError:
        # httpx decodes the name for each call.
        raise Blocked("must have a host name whose parts with xn-- stand for a name") from None
    if parsed.raw_host.decode("ascii").lower() != host or parsed.userinfo:
        raise Blocked("must be an absolute https URL without user name, spaces or backslashes")
    return Target(host, port)


def _check_host(host: str, *, bracketed: bool) -> None:
    """Refuse a host that is neither a name nor an IP address in its usual form. Raises Blocked."""
    literal = _literal(host)
    if literal is not None:
        if bracketed != (literal.version == 6):
            raise Blocked("must have brackets around an IPv6 address, and only there")
        return
    labels = host.split(".")
    if bracketed or len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise Blocked("must have a host name of letters, digits, hyphens and single dots")
    if _NUMERIC.fullmatch(labels[-1]):
        raise Blocked("must have an IP address in its usual form, such as 203.0.113.7")


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_listed(host: str) -> bool:
    """Return whether A2A_OUTBOUND_HOSTS has this host."""
    return is_among(host, settings.A2A_OUTBOUND_HOSTS)


def is_among(host: str, items: Sequence[str]) -> bool:
    """Return whether a host is one of these names, or an address of these networks."""
    names, networks = _names(tuple(items))
    literal = _literal(host)
    return host in names or (literal is not None and any(literal in network for network in networks))


def _in_listed_network(address: Address) -> bool:
    return any(address in network for network in _names(tuple(settings.A2A_OUTBOUND_HOSTS))[1])


@cache
def _names(items: tuple[str, ...]) -> tuple[frozenset[str], tuple[Any, ...]]:
    """Return the names and the networks in the value of a setting."""
    names, networks = set(), []
    for item in items:
        try:
            networks.append(ip_network(item))
        except ValueError:
            names.add(item.lower())
    return frozenset(names), tuple(networks)


def is_allowed(address: Address) -> bool:
    """Return whether the address is in the public network, or allowed by the settings."""
    if _in_listed_network(address):
        return True
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None:
            return is_allowed(address.ipv4_mapped)
    if settings.A2A_OUTBOUND_LOOPBACK and address.is_loopback:
        return True
    if address.is_multicast or not address.is_global or (address.version == 6 and address not in _GIVEN_OUT):
        return False
    return not any(address in network for network in _NEVER if network.version == address.version)


async def check(url: str) -> None:
    """Check a URL as a delivery would, with a look-up of its name. Raises Blocked and Unknown."""
    place = target(url)
    if not _is_listed(place.host):
        await resolve(place.host, place.port, registering)


async def resolve(host: str, port: int, lookups: Lookups) -> list[str]:
    """Return the present addresses of a name, all of them allowed. Raises Blocked and Unknown."""
    numbers = [host] if _literal(host) else await _look_up(host, port, lookups)
    # One address that is not allowed blocks the name: otherwise chance would decide whether a call goes through.
    if not _is_listed(host) and not all(map(_may_dial, numbers)):
        raise (Blocked if _literal(host) else Inside)("leads to an address that is not of the public network")
    return numbers


async def _look_up(host: str, port: int, lookups: Lookups) -> list[str]:
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            answers = await lookup(host, port, lookups)
    except TimeoutError:
        raise Unknown(f"the name was not resolved within {LOOKUP_SECONDS:g} s") from None
    except (OSError, UnicodeError):
        raise Unknown("the name cannot be resolved") from None
    numbers = list(dict.fromkeys(str(answer[4][0]) for answer in answers))
    if not numbers:
        raise Unknown("the name cannot be resolved")
    return numbers


def _may_dial(number: str) -> bool:
    literal = _literal(number)
    return literal is not None and is_allowed(literal)


async def lookup(host: str, port: int, lookups: Lookups) -> Answers:
    """Look a name up with the system's resolver."""
    return await lookups.find(host, port)


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
