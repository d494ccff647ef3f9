"""The policy for URLs that callers choose: which may be called, as they are written and as they are dialled."""

import asyncio
import re
from collections.abc import Sequence
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, NamedTuple

import httpx
from django.conf import settings

from tasks_app.outbound.resolving import Answers, Lookups, registering

LOOKUP_SECONDS = 5.0
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
    takes_http = listed or settings.A2A_OUTBOUND_LOOPBACK
    if scheme != "https" and not (scheme == "http" and takes_http):
        raise Blocked("must begin with https:// or http://" if takes_http else "must begin with https://")
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
