"""Where a call comes from: the address of the peer, or what proxies that are trusted say of it."""

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings
from django.http import HttpRequest

LONGEST = 45
"""Characters of the longest IP address: an IPv4 address inside of IPv6."""
MOST_HOPS = 32
"""Entries of a header that are looked at, from its end."""
_FOR = re.compile(r'(?:^|;)\s*for=(?:"([^"\\,;]*)"|([^\s",;]*))', re.IGNORECASE)
_WITH_PORT = re.compile(r"\[([0-9a-fA-F:.]+)\](?::\d{1,5})?|([0-9.]+):\d{1,5}")


def peer_of(request: HttpRequest) -> str | None:
    """Return the address that the call came from; None if the server does not know, as behind a socket of this machine.

    A header counts only as far as proxies of A2A_TRUSTED_PROXIES have written it: it is read from its end, and the
    first address that is no such proxy is the caller. What stands before that is the caller's invention.
    """
    meta = request.META
    address: str | None = meta.get("REMOTE_ADDR") or None
    proxies = settings.A2A_TRUSTED_PROXIES
    if not proxies or address is None:
        return _plain(address) if address and ":" in address else address
    known = _address(address)
    for hop in _hops(meta):
        if known is None or not _is_proxy(known, tuple(proxies)):
            break
        if (before := _address(hop)) is None:
            break
        known = before
    return known or address[:LONGEST]


def _hops(meta: Any) -> list[str]:
    """Return what the proxies say, the nearest first."""
    if settings.A2A_TRUST_FORWARDED == "forwarded":
        entries = meta.get("HTTP_FORWARDED", "").rsplit(",", MOST_HOPS)[-MOST_HOPS:]
        found = [_FOR.search(entry) for entry in reversed(entries)]
        return [(hop[1] or hop[2] or "") if hop else "" for hop in found]
    entries = meta.get("HTTP_X_FORWARDED_FOR", "").rsplit(",", MOST_HOPS)[-MOST_HOPS:]
    return list(reversed(entries))


@lru_cache(maxsize=4096)
def _address(text: str) -> str | None:
    """Return the address in its usual form, without a port; None for what is none."""
    text = text.strip()[: LONGEST + 20]
    if found := _WITH_PORT.fullmatch(text):
        text = found[1] or found[2]
    try:
        return _plain(str(ip_address(text.partition("%")[0])))
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _plain(address: str) -> str:
    """Return an address of IPv4 that came over a socket of IPv6 as what it is."""
    try:
        literal = ip_address(address)
    except ValueError:
        return address[:LONGEST]
    mapped = literal.ipv4_mapped if isinstance(literal, IPv6Address) else None
    return str(mapped or literal)[:LONGEST]


@lru_cache(maxsize=4096)
def _is_proxy(address: str, proxies: tuple[str, ...]) -> bool:
    literal = ip_address(address)
    return any(literal in network for network in _networks(proxies) if network.version == literal.version)


@lru_cache(maxsize=8)
def _networks(proxies: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(map(ip_network, proxies))
