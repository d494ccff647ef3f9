"""Addresses: which can be called, and where a card may lead."""

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from a2a.client.errors import InvalidCall

HTTP, WS = ("http", "https"), ("ws", "wss")
"""The schemes of the transports."""
_OVER_TLS = frozenset({"https", "wss"})
"""The schemes of addresses with TLS. `urlsplit` gives schemes in lower case."""


def check_address(url: str, schemes: Collection[str]) -> None:
    """Raise InvalidCall if an address cannot be called.

    A user name in it would take the place of the caller's credentials, and errors would show its password.
    """
    why = f"it must have the form {'://host:port/path or '.join(schemes)}://host:port/path"
    if url and "://" not in url:
        why += f"; add {':// or '.join(schemes)}:// before it"
    try:
        parts = urlsplit(url)
        if "@" in parts.netloc:
            place = parts.netloc.rpartition("@")[2]
            raise InvalidCall(f"the address of {place[:200]!r} has a user name: give credentials to the client instead")
        if parts.scheme in schemes and parts.hostname and parts.port != 0:
            return
    except ValueError as error:
        why = str(error)
    raise InvalidCall(f"the address {url[:200]!r} is not valid: {why}")


def is_as_safe(url: str, source: str) -> bool:
    """Return whether a card from the source may lead to the address."""
    try:
        return urlsplit(url).scheme in _OVER_TLS or urlsplit(source).scheme != "https" or is_loopback(url)
    except ValueError:
        return False


def is_loopback(url: str) -> bool:
    """Return whether the address is one of this machine. Raises ValueError."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
