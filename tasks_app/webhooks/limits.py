"""Limits of tries under way and of the bytes sent, for one owner and for one address."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Protocol

from django.conf import settings

from tasks_app.limits.buckets import DebtBuckets
from tasks_app.outbound import dialling

AT_A_HOST = 8
"""Tries of one owner under way at one host, and at one address. So the slow webhooks of an owner leave slots, and their
host, to other owners."""
OF_SLOTS = 2
"""The part of all slots, as one in so many, that one owner may have with many slow hosts, and one host with many
owners."""
CROWDED_SECONDS = 1.0
"""Seconds, more or less, until a try is made again whose address had too many tries under way."""
_V6_PREFIX = 64
"""Bits of an IPv6 address that name a network. One machine may have any number of addresses within it."""


class Postponement(Exception):
    """Raised for a try that cannot be made now. It is due after `seconds`; the sentence is for operators."""

    def __init__(self, seconds: float, sentence: str) -> None:
        super().__init__(sentence)
        self.seconds = seconds


class Exhausted(dialling.Crowded):
    """Raised for an address to which too many bytes were sent. It may have more after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


class Try(Protocol):
    """The attributes of a try that limits depend on."""

    @property
    def webhook(self) -> str: ...
    @property
    def owner_id(self) -> int: ...
    @property
    def host(self) -> str: ...


def max_tries() -> int:
    """Return the limit of tries under way for one owner, one host, and one address."""
    return max(1, int(settings.A2A_DELIVERY_SLOTS) // OF_SLOTS)


class Busy:
    """The tries that are under way, by owner, host and address."""

    def __init__(self, running: Iterable[Try] = (), volumes: DebtBuckets | None = None) -> None:
        self.pairs: Counter[tuple[int, str]] = Counter()
        self.hosts: Counter[str] = Counter()
        self.owners: Counter[int] = Counter()
        self.volumes = volumes
        """The bytes sent for each owner; None: not counted."""
        for lease in running:
            self.add(lease)

    def add(self, lease: Try) -> None:
        self.pairs[lease.owner_id, lease.host] += 1
        self.hosts[lease.host] += 1
        self.owners[lease.owner_id] += 1

    def full(self) -> tuple[list[tuple[int, str]], list[str], list[int]]:
        """Return the pairs of owner and host, the hosts, and the owners that have reached their limit."""
        most = max_tries()
        return (
            [pair for pair, tries in self.pairs.items() if tries >= AT_A_HOST],
            [host for host, tries in self.hosts.items() if tries >= most],
            [owner for owner, tries in self.owners.items() if tries >= most],
        )

    def has_room(self, owner_id: int, host: str) -> bool:
        most = max_tries()
        return self.pairs[owner_id, host] < AT_A_HOST and max(self.hosts[host], self.owners[owner_id]) < most


class Places:
    """The addresses at which tries are under way, and the bytes sent to them. Many names may lead to one address, as in
    a wildcard domain."""

    def __init__(self) -> None:
        self.volumes = DebtBuckets(lambda: settings.A2A_ADDRESS_DELIVERY_BYTES)
        """The bytes sent to each place."""
        self.tries: Counter[str] = Counter()
        self.of_owners: Counter[tuple[int, str]] = Counter()
        self.places: dict[str, list[str]] = {}
        """The places of each try, by its webhook."""

    def enter(self, lease: Try, size: int, now: datetime, number: str) -> None:
        """Count a try of so many bytes at the address that it is about to dial. Raises Crowded and Exhausted."""
        place = place_of(number)
        if self.of_owners[lease.owner_id, place] >= AT_A_HOST or self.tries[place] >= max_tries():
            raise dialling.Crowded
        if not self.volumes.use(place, size, now):
            raise Exhausted(self.volumes.wait(place, now))
        self.tries[place] += 1
        self.of_owners[lease.owner_id, place] += 1
        self.places.setdefault(lease.webhook, []).append(place)

    def leave(self, lease: Try) -> None:
        """Stop counting a try at all of its addresses."""
        for place in self.places.pop(lease.webhook, ()):
            self.tries -= Counter([place])
            self.of_owners -= Counter([(lease.owner_id, place)])


def place_limit_reason() -> str:
    """Return the reason, for operators, why a webhook waits for the bytes of its address."""
    return f"held back: its address has had more than {settings.A2A_ADDRESS_DELIVERY_BYTES} bytes sent in a minute"


def place_of(number: str) -> str:
    """Return the key under which an address is counted. For IPv6 that is its network, which one receiver may own."""
    address = ip_address(number.partition("%")[0])
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, _V6_PREFIX), strict=False))
