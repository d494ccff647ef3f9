"""Calls to addresses that callers chose: which may be made, and the client that makes only those.

An address is checked twice: as written, and at the moment of dialling, where its name is looked up once, every answer
must be allowed, and one of those very answers is dialled. So a name that changes its mind reaches nothing.
"""

import asyncio
import re
import ssl
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, NamedTuple

import httpcore
import httpx
from django.conf import settings

from tasks_app.outbound.resolving import Found, Lookups, registering, sending

LOOKUP_SECONDS = 5.0
CONNECT_SECONDS = 5.0
MOST_READ = 131_072
"""Bytes read from one connection. Informational answers, for one, may go on for ever, and no time limit sees them."""
PORTS_FROM = 1_024
"""Lower ports are other protocols' own, apart from those of HTTP."""
_URL = re.compile(
    r"(?P<scheme>[a-z]+)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?(?:[/?#][\x21-\x7e]*)?",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
"""The last label of what some resolvers read as an IPv4 address in another spelling."""
_NEVER = tuple(
    map(
        ip_network,
        (
            "192.0.0.0/24",  # protocol assignments, among them a cloud's metadata; not all of it is "private" to Python
            "192.88.99.0/24",  # relays into 6to4
            "168.63.129.16/32",  # a cloud's metadata on a public address
            "3fff::/20",  # documentation
            # IPv6 that carries an IPv4 address, which would have to be checked as well.
            *("2001::/32", "2002::/16"),
        ),
    )
)
_GIVEN_OUT = ip_network("2000::/3")
"""All of IPv6 that is given out for the public network; to Python the rest of it counts as public too."""

Address = IPv4Address | IPv6Address


class Blocked(Exception):
    """The address must not be called. The sentence says why, and may be shown to the caller."""


class Inside(Blocked):
    """The name leads to an address that must not be called."""


class Unknown(Exception):
    """The name leads nowhere at the moment."""


class Crowded(Exception):
    """Raised when every address of a name has as many calls under way as it may have."""


def _anybody(number: str) -> None:
    """Let every call in."""


arrival: ContextVar[Callable[[str], None]] = ContextVar("arrival", default=_anybody)
"""Called in the caller's own context with an address before it is dialled; it may raise Crowded."""


class Target(NamedTuple):
    """The host and port of a call."""

    host: str
    port: int


def target(url: str) -> Target:
    """Where the URL leads, if it may be called as it is written. Raises Blocked."""
    if not url.isascii():
        raise Blocked("must be written in ASCII: names as xn--…, other characters as %XX")
    found = _URL.fullmatch(url)
    if found is None:
        raise Blocked("must be an absolute https URL without user name, spaces or backslashes")
    scheme, host = found["scheme"].lower(), found["host"].strip("[]").lower()
    _check_host(host, bracketed=found["host"].startswith("["))
    listed = _listed(host)
    if scheme != "https" and not (scheme == "http" and (listed or settings.A2A_OUTBOUND_LOOPBACK)):
        raise Blocked("must begin with https://")
    usual = 443 if scheme == "https" else 80
    port = int(found["port"] or usual)
    if not 0 < port <= 65_535 or not (listed or port == usual or port >= PORTS_FROM):
        raise Blocked(f"must have port 443 or one from {PORTS_FROM} to 65535")
    # One reader of the address for the check and for the call: the two must not see different hosts.
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        raise Blocked("must be an absolute https URL") from None
    if parsed.raw_host.decode("ascii").lower() != host or parsed.userinfo:
        raise Blocked("must be an absolute https URL without user name, spaces or backslashes")
    return Target(host, port)


def _check_host(host: str, *, bracketed: bool) -> None:
    """Raises Blocked for what is neither a name nor an address in its usual form."""
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


def _listed(host: str) -> bool:
    """Whether the operator named this host."""
    return host in _names(tuple(settings.A2A_OUTBOUND_HOSTS))[0] or (
        (literal := _literal(host)) is not None and _in_listed_network(literal)
    )


def _in_listed_network(address: Address) -> bool:
    return any(address in network for network in _names(tuple(settings.A2A_OUTBOUND_HOSTS))[1])


@cache
def _names(listed: tuple[str, ...]) -> tuple[frozenset[str], tuple[Any, ...]]:
    """The names and the networks of the setting."""
    names, networks = set(), []
    for item in listed:
        try:
            networks.append(ip_network(item))
        except ValueError:
            names.add(item.lower())
    return frozenset(names), tuple(networks)


def allowed(address: Address) -> bool:
    """Whether the address is one of the public network, or was allowed by the operator."""
    if _in_listed_network(address):
        return True
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None:
            return allowed(address.ipv4_mapped)
    if settings.A2A_OUTBOUND_LOOPBACK and address.is_loopback:
        return True
    if address.is_multicast or not address.is_global or (address.version == 6 and address not in _GIVEN_OUT):
        return False
    return not any(address in network for network in _NEVER if network.version == address.version)


async def check(url: str) -> None:
    """Looks the address up, as a delivery would. Raises Blocked and Unknown."""
    where = target(url)
    if not _listed(where.host):
        await addresses(where.host, where.port, registering)


async def addresses(host: str, port: int, lookups: Lookups) -> list[str]:
    """Return the addresses of the name now, all of them allowed. Raises Blocked and Unknown."""
    numbers = [host] if _literal(host) else await _numbers(host, port, lookups)
    # One answer that is not allowed is enough: which of them is dialled must not be up to chance.
    if not _listed(host) and not all(map(_may_dial, numbers)):
        raise (Blocked if _literal(host) else Inside)("leads to an address that is not of the public network")
    return numbers


async def _numbers(host: str, port: int, lookups: Lookups) -> list[str]:
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            found = await lookup(host, port, lookups)
    except TimeoutError:
        raise Unknown(f"the name was not resolved within {LOOKUP_SECONDS:g} s") from None
    except (OSError, UnicodeError):
        raise Unknown("the name cannot be resolved") from None
    numbers = list(dict.fromkeys(str(answer[4][0]) for answer in found))
    if not numbers:
        raise Unknown("the name cannot be resolved")
    return numbers


def _may_dial(number: str) -> bool:
    literal = _literal(number)
    return literal is not None and allowed(literal)


async def lookup(host: str, port: int, lookups: Lookups) -> Found:
    """The system's resolver."""
    return await lookups.find(host, port)


class Bounded(httpcore.AsyncNetworkStream):
    """A connection of which only so much is read."""

    def __init__(self, inner: httpcore.AsyncNetworkStream, left: int = MOST_READ) -> None:
        self.inner = inner
        self.left = left

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self.left <= 0:
            raise httpcore.ReadError(f"more than {MOST_READ} bytes")
        piece = await self.inner.read(min(max_bytes, self.left), timeout)
        self.left -= len(piece)
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self.inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return Bounded(await self.inner.start_tls(ssl_context, server_hostname, timeout), self.left)

    def get_extra_info(self, info: str) -> Any:
        return self.inner.get_extra_info(info)


class Dialler(httpcore.AsyncNetworkBackend):
    """Connects to checked addresses only. TLS is still about the name: that is not the dialler's business."""

    def __init__(self) -> None:
        self.inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failed: Exception | None = None
        for number in await addresses(host, port, sending):
            try:
                arrival.get()(number)
                return Bounded(await self.inner.connect_tcp(number, port, timeout, local_address, socket_options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout, Crowded) as error:
                failed = error
        raise failed or httpcore.ConnectError("nothing to connect to")

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise Blocked("is a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await self.inner.sleep(seconds)


def client(*, seconds: float, verify: ssl.SSLContext | None = None) -> httpx.AsyncClient:
    """A client whose every connection is dialled anew and checked. No redirects, and no proxies from the environment,
    which would do the dialling. Call target() on the URL first; the time limit is that of the whole call's parts."""
    context = verify or ssl.create_default_context()
    transport = httpx.AsyncHTTPTransport(verify=context, trust_env=False)
    # httpx has no argument for it; tests/transports/test_outbound.py counts what is connected to.
    transport._pool = httpcore.AsyncConnectionPool(
        ssl_context=context, max_connections=None, max_keepalive_connections=0, network_backend=Dialler()
    )
    return httpx.AsyncClient(
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(seconds, connect=CONNECT_SECONDS),
    )
