"""The networks from which a key may be used."""

from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from tasks_app.callers.wrong_values import WrongValue

MOST = 50
"""Networks of one key."""


def read_networks(text: str) -> str:
    """Return networks in CIDR notation, separated by spaces, in their usual form; a single address is a network.

    An empty text is no restriction; a text of separators alone is a mistake. Raises ValueError with a sentence.
    """
    words = text.replace(",", " ").split()
    if text and not words:
        raise WrongValue("networks", f"{text!r} names no network, and a key without networks may be used from anywhere")
    if len(words) > MOST:
        raise WrongValue("networks", f"a key may have {MOST} networks, not {len(words)}")
    return " ".join(str(_network(word)) for word in words)


def _network(word: str) -> IPv4Network | IPv6Network:
    """Return a network. An IPv4 network in IPv6 notation is written as IPv4, as the addresses of callers are."""
    try:
        network = ip_network(word)
    except ValueError:
        wrong = f"{word!r} is not a network such as 10.1.0.0/16 or 2001:db8::/32"
        with suppress(ValueError):
            wrong = f"{wrong}: it is an address within {ip_network(word, strict=False)}"
        raise WrongValue("networks", wrong) from None
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    return network if mapped is None or network.prefixlen < 96 else ip_network((mapped, network.prefixlen - 96))


def admits(networks: str, peer: str | None) -> bool:
    """Return whether a key with these networks may be used from an address. A key without networks may be used from
    every address."""
    return not networks or _admits(networks, peer or "")


@lru_cache(maxsize=4096)
def _admits(networks: str, peer: str) -> bool:
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    return any(address in ip_network(word) for word in networks.split())
