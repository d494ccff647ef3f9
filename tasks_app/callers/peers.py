"""The network address that a call came from, behind trusted proxies if there are any, and its trace."""

import logging
import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings
from django.http import HttpRequest

log = logging.getLogger(__name__)

LONGEST = 45
"""Characters of the longest IP address, which is an IPv4 address within IPv6."""
MOST_HOPS = 32
"""Entries of a header that are read, from its end."""
_FOR = re.compile(r'(?:^|;)\s*for=(?:"([^"\\,;]*)"|([^\s",;]*))', re.IGNORECASE)
_WITH_PORT = re.compile(r"\[([0-9a-fA-F:.]+)\](?::\d{1,5})?|([0-9.]+):\d{1,5}")
_TRACE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def peer_of(request: HttpRequest) -> str | None:
    """Return the address that the call came from; None if the server does not know it, as with a Unix socket."""
    return peer_in(request.META)


def peer_in(meta: Mapping[str, Any]) -> str | None:
    """Return the address that a call with these headers, named as in WSGI, came from.

    Only entries that a proxy of A2A_TRUSTED_PROXIES wrote count. Each proxy adds its peer at the end of the header, so
    the header is read backwards, and the first address that is not such a proxy is the caller. The caller may have made
    up all entries before that.
    """
    address: str | None = meta.get("REMOTE_ADDR") or None
    proxies = settings.A2A_TRUSTED_PROXIES
    if not proxies or address is None:
        return _plain(address) if address and ":" in address else address
    peer = _address(address)
    for hop in _hops(meta):
        if peer is None or not _is_proxy(peer, tuple(proxies)):
            break
        # A caller may have made the entry up. It is cut before it is cached.
        if (before := _address(hop.strip()[: LONGEST + 20])) is None:
            break
        peer = before
    return peer or address[:LONGEST]


def trace_of(request: HttpRequest) -> str:
    """Return the trace id of a traceparent header (W3C Trace Context); empty without one."""
    match = _TRACE.fullmatch(request.META.get("HTTP_TRACEPARENT", ""))
    return match[1] if match else ""


def network_of(address: str | None) -> str:
    """Return the network that stands for one client: an IPv4 address, or the /64 of an IPv6 address, because one client
    usually has all addresses of it. It is empty for anything else."""
    return _place(address)[0] if address else ""


def is_forwarded(meta: Mapping[str, Any]) -> bool:
    """Return whether a call with these headers, named as in WSGI, says that a proxy has forwarded it, and none of
    A2A_TRUSTED_PROXIES has sent it."""
    return ("HTTP_X_FORWARDED_FOR" in meta or "HTTP_FORWARDED" in meta) and not comes_from_proxy(meta)


def origin_of(address: str | None, *, forwarded: bool) -> str:
    """Return the network of a caller for limits that one caller must not reach for others; empty if there is none.

    While A2A_TRUSTED_PROXIES is empty, there is none behind a proxy: all its callers share one address, and a limit
    reached by one of them would keep all of them out. Once it names proxies, another address that sends a proxy's
    header may be a caller who wants to avoid the limit. `forwarded` is the result of is_forwarded().
    """
    network, is_private = _place(address) if address else ("", False)
    if not (forwarded and is_private):
        return network
    has_proxies = bool(settings.A2A_TRUSTED_PROXIES)
    _warn_of_proxy(network, has_proxies)
    return network if has_proxies else ""


def origin_in(meta: Mapping[str, Any]) -> str:
    """Return the origin of a call with these headers, named as in WSGI."""
    return origin_of(peer_in(meta), forwarded=is_forwarded(meta))


@lru_cache(maxsize=16)
def _warn_of_proxy(address: str, has_proxies: bool) -> None:
    """Log, once for each address, that it may be a proxy that is not trusted."""
    what, effect = (
        ("does not name it", "all callers from there share the limits of one address")
        if has_proxies
        else ("is empty", "no limit by address holds for them")
    )
    log.warning(
        "Calls with a proxy's header come from %s, and A2A_TRUSTED_PROXIES %s, so %s. If it is a proxy, add its "
        "address to A2A_TRUSTED_PROXIES. If not, let it reach this server through a proxy only.",
        address,
        what,
        effect,
    )


def comes_from_proxy(meta: Mapping[str, Any]) -> bool:
    """Return whether a proxy of A2A_TRUSTED_PROXIES sent the request itself, with the headers named as in WSGI."""
    proxies = tuple(settings.A2A_TRUSTED_PROXIES)
    peer = _address(meta.get("REMOTE_ADDR") or "") if proxies else None
    return peer is not None and _is_proxy(peer, proxies)


def may_forward(meta: Mapping[str, Any]) -> bool:
    """Return whether the headers with which a proxy gives the base URL count in a request with these headers.

    They count from the proxies of A2A_TRUSTED_PROXIES alone. While that is empty they count from every peer.
    """
    return not settings.A2A_TRUSTED_PROXIES or comes_from_proxy(meta)


def _hops(meta: Any) -> list[str]:
    """Return the entries of the proxies' header, the nearest proxy's first."""
    if settings.A2A_TRUST_FORWARDED == "forwarded":
        entries = meta.get("HTTP_FORWARDED", "").rsplit(",", MOST_HOPS)[-MOST_HOPS:]
        matches = [_FOR.search(entry) for entry in reversed(entries)]
        return [(match[1] or match[2] or "") if match else "" for match in matches]
    entries = meta.get("HTTP_X_FORWARDED_FOR", "").rsplit(",", MOST_HOPS)[-MOST_HOPS:]
    return list(reversed(entries))


@lru_cache(maxsize=4096)
def _address(text: str) -> str | None:
    """Return an IP address in its usual form, without a port; None if the text is not an IP address."""
    if match := _WITH_PORT.fullmatch(text):
        text = match[1] or match[2]
    try:
        return _plain(str(ip_address(text.partition("%")[0])))
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _plain(address: str) -> str:
    """Return an address; one of IPv4 that came over an IPv6 socket in the form of IPv4."""
    try:
        literal = ip_address(address)
    except ValueError:
        return address[:LONGEST]
    mapped = literal.ipv4_mapped if isinstance(literal, IPv6Address) else None
    return str(mapped or literal)[:LONGEST]


@lru_cache(maxsize=4096)
def _place(address: str) -> tuple[str, bool]:
    """Return the network of a client, and whether its address is a private one; ("", False) for no IP address."""
    try:
        literal = ip_address(address.partition("%")[0])
    except ValueError:
        return "", False
    network = str(ip_network((literal, 64), strict=False)) if isinstance(literal, IPv6Address) else str(literal)
    return network, literal.is_private


@lru_cache(maxsize=4096)
def _is_proxy(address: str, proxies: tuple[str, ...]) -> bool:
    literal = ip_address(address)
    return any(literal in network for network in _networks(proxies) if network.version == literal.version)


@lru_cache(maxsize=8)
def _networks(proxies: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(map(ip_network, proxies))
