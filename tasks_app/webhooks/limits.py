"""How many tries may be under way, of one owner and at one address, and how many bytes an owner may have sent."""

from collections import Counter
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Protocol

from django.conf import settings

from tasks_app.callers.buckets import Buckets
from tasks_app.outbound import dialling as outbound

AT_A_HOST = 8
"""Tries of one owner at one host, and at one address, at the same time: what is slow there leaves slots, and the host,
to others."""
OF_SLOTS = 2
"""One owner, who may know many slow hosts, gets one in so many slots; and so does one host, which many may know."""
CROWDED_SECONDS = 1.0
"""After about so long a try is made whose address had as many as it may have."""
_V6_PREFIX = 64
"""Bits of an IPv6 address that name a network, in which one machine may have any number of addresses."""


class Postponed(Exception):
    """The try was not made; it is due after so many seconds. The sentence is for operators."""

    def __init__(self, seconds: float, sentence: str) -> None:
        super().__init__(sentence)
        self.seconds = seconds


class Try(Protocol):
    """A turn, as far as limits go."""

    @property
    def config(self) -> str: ...
    @property
    def owner_id(self) -> int: ...
    @property
    def host(self) -> str: ...


def most_of_slots() -> int:
    """Return how many tries one owner may have, and one host, and one address."""
    return max(1, int(settings.A2A_DELIVERY_SLOTS) // OF_SLOTS)


class Busy:
    """The tries that are under way, by owner, host and address."""

    def __init__(self, running: Iterable[Try] = (), sent: Buckets | None = None) -> None:
        self.pairs: Counter[tuple[int, str]] = Counter()
        self.hosts: Counter[str] = Counter()
        self.owners: Counter[int] = Counter()
        self.sent = sent
        """The bytes that owners have had sent; None: not counted."""
        for turn in running:
            self.add(turn)

    def add(self, turn: Try) -> None:
        self.pairs[turn.owner_id, turn.host] += 1
        self.hosts[turn.host] += 1
        self.owners[turn.owner_id] += 1

    def full(self) -> tuple[list[tuple[int, str]], list[str], list[int]]:
        """The owners at a host, the hosts and the owners with as many tries as they may have."""
        most = most_of_slots()
        return (
            [pair for pair, tries in self.pairs.items() if tries >= AT_A_HOST],
            [host for host, tries in self.hosts.items() if tries >= most],
            [owner for owner, tries in self.owners.items() if tries >= most],
        )

    def has_room(self, owner_id: int, host: str) -> bool:
        most = most_of_slots()
        return self.pairs[owner_id, host] < AT_A_HOST and max(self.hosts[host], self.owners[owner_id]) < most


class Places:
    """The addresses at which tries are under way: many names may lead to one, as those of a wildcard domain do."""

    def __init__(self) -> None:
        self.tries: Counter[str] = Counter()
        self.of_owners: Counter[tuple[int, str]] = Counter()
        self.entered: dict[str, list[str]] = {}
        """The places of each try, by its webhook."""

    def enter(self, turn: Try, number: str) -> None:
        """Count the try at the address that is about to be dialled. Raises Crowded."""
        place = place_of(number)
        if self.of_owners[turn.owner_id, place] >= AT_A_HOST or self.tries[place] >= most_of_slots():
            raise outbound.Crowded
        self.tries[place] += 1
        self.of_owners[turn.owner_id, place] += 1
        self.entered.setdefault(turn.config, []).append(place)

    def leave(self, turn: Try) -> None:
        """Count the try no more, wherever it was."""
        for place in self.entered.pop(turn.config, ()):
            self.tries -= Counter([place])
            self.of_owners -= Counter([(turn.owner_id, place)])


def place_of(number: str) -> str:
    """Return the key of an address: for IPv6 its network, whose addresses may all belong to one receiver."""
    address = ip_address(number.partition("%")[0])
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, _V6_PREFIX), strict=False))
