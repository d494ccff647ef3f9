"""The quota: how many bytes an owner may have stored, and what this process knows of them.

A routine sums what is stored (upkeep/quotas.py). Between two sums, each process adds what it stores itself. So a check
asks no database, and a burst within one pause is limited too. A process learns with the next sum what others store.
"""

import threading
from collections import Counter
from collections.abc import Mapping

from django.conf import settings
from msgspec import Struct

from a2a.errors import RateLimited

REST = 60
"""Seconds after which an owner at the quota may try again."""


class QuotaReached(RateLimited, twin=True):
    """The caller has as much stored as its quota allows. The fact `detail` says how much, and what to do."""

    sentence = "The quota of stored bytes is reached"


class Baseline(Struct, frozen=True, kw_only=True):
    """The state of the quota when a sum begins."""

    owners: frozenset[int] | None
    """The owners to sum for; None for all."""
    since: Counter[int]


class Quota:
    """The stored bytes of owners as far as one process knows. Any thread may use it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_summed = False
        """Whether the routine runs in this process. A worker has none: it begins no work for callers, and what it adds
        would never be taken off again."""
        self.counted: dict[int, int] | None = None
        """The stored bytes by owner, as of the last sum; None before the first."""
        self.since: Counter[int] = Counter()
        """Bytes that this process stored after the last sum of their owner began."""

    def add(self, owner_id: int, size: int) -> None:
        """Add what this process has stored for an owner, or is about to store."""
        if size and self.is_summed and settings.A2A_OWNER_STORED_BYTES:
            with self.lock:
                self.since[owner_id] += size

    def stored(self, owner_id: int) -> int:
        """Return the bytes of an owner, as far as this process knows."""
        counted = self.counted
        return (counted.get(owner_id, 0) if counted else 0) + self.since.get(owner_id, 0)

    def is_reached(self, owner_id: int) -> bool:
        """Return whether an owner has as much stored as the quota allows."""
        most = settings.A2A_OWNER_STORED_BYTES
        return bool(most) and self.stored(owner_id) >= most

    def check(self, owner_id: int) -> None:
        """Check that an owner may begin new work. Raises QuotaReached."""
        if self.is_reached(owner_id):
            stored, most = self.stored(owner_id), settings.A2A_OWNER_STORED_BYTES
            detail = (
                f"{stored:,} bytes are stored, and {most:,} is the most; delete entries of the memory, wait until old "
                "tasks are deleted, or ask the operator"
            )
            raise QuotaReached(REST, limit="stored bytes", most=str(most), stored=str(stored), detail=detail)

    def check_other(self, owner_id: int, thing: str) -> None:
        """Check that a caller may add to a thing of another owner. Raises QuotaReached, which names the thing."""
        if self.is_reached(owner_id):
            most = settings.A2A_OWNER_STORED_BYTES
            detail = f"the owner of the {thing} has {most:,} bytes or more stored, which is the most"
            raise QuotaReached(REST, limit=f"stored bytes of the owner of the {thing}", most=str(most), detail=detail)

    def begin_sum(self) -> Baseline:
        """Prepare for a sum. Pass the result to end_sum().

        The first sum is for all owners. A later one is for owners whose bytes may have changed and matter here: those
        for whom this process has stored anything since, and those at the quota.
        """
        with self.lock:
            if self.counted is None:
                return Baseline(owners=None, since=self.since.copy())
            most = settings.A2A_OWNER_STORED_BYTES
            full = {owner_id for owner_id, size in self.counted.items() if most and size >= most}
            return Baseline(owners=frozenset(full | self.since.keys()), since=self.since.copy())

    def end_sum(self, baseline: Baseline, sums: Mapping[int, int]) -> None:
        """Take in the sums of the owners of a baseline. An owner without one has nothing stored."""
        with self.lock:
            if baseline.owners is None or self.counted is None:
                self.counted = dict(sums)
            else:
                self.counted.update({owner_id: sums.get(owner_id, 0) for owner_id in baseline.owners})
            self.since.subtract(baseline.since)
            self.since = +self.since


quota = Quota()
"""The quota of this process."""
