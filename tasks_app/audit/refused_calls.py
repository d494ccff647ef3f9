"""Refused calls of authenticated callers, counted by caller, credential, reason and hour.

They are counted in the process and stored in groups, because a caller may be refused thousands of times in a second. A
process that is killed loses the counts since the last round.
"""

import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from msgspec import Struct

from a2a.errors import BudgetExceeded, Error, MissingScope, PermissionDenied, RateLimited, Unavailable
from tasks_app import clock
from tasks_app.callers.access import Caller
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.models import RefusedCalls

COUNTED: tuple[type[Error], ...] = (MissingScope, PermissionDenied, BudgetExceeded, RateLimited, Unavailable)
"""Errors of calls that are counted and have no entry of their own."""
OTHER_NETWORK = "OTHER_NETWORK"
"""The reason for a key that came from a network it may not be used from."""
MOST = 10_000
"""Counts that a process keeps while the database is away. Further ones are dropped."""
_TABLE = RefusedCalls._meta.db_table
_ADD = f"""
insert into {_TABLE} as t (hour, caller_id, caller, tenant_id, tenant, credential, reason, count, last_at, last_peer)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
on conflict (hour, caller_id, credential, reason) do update
set count = t.count + excluded.count, last_at = excluded.last_at, last_peer = excluded.last_peer
"""


class Group(Struct, frozen=True):
    """The refusals that are counted together."""

    hour: datetime
    caller_id: int
    caller: str
    tenant_id: int
    tenant: str
    credential: str
    reason: str


class Tally(Struct, frozen=True):
    """The number of refusals, with the time and the address of the newest."""

    count: int
    last_at: datetime
    last_peer: str | None


class Counts:
    """Counts of refused calls."""

    def __init__(self) -> None:
        self._tallies: dict[Group, Tally] = {}
        self._lock = threading.Lock()

    def count(self, caller: Caller, reason: str, peer: str | None) -> None:
        """Count a refused call."""
        now = clock.now()
        hour = now.replace(minute=0, second=0, microsecond=0)
        group = Group(hour, caller.owner_id, caller.name, caller.tenant_id, caller.tenant, caller.credential, reason)
        with self._lock:
            self._add(group, Tally(1, now, peer))

    def flush(self) -> None:
        """Store the counts. Those that the database refuses are kept for the next time."""
        with self._lock:
            tallies, self._tallies = self._tallies, {}
        if not tallies:
            return
        try:
            bridge.do(Do(lambda: _store(tallies)), patience=0)
        except Exception:
            with self._lock:
                for group, tally in tallies.items():
                    self._add(group, tally)
            raise

    def _add(self, group: Group, tally: Tally) -> None:
        if (other := self._tallies.get(group)) is not None:
            newest = max(other, tally, key=lambda each: each.last_at)
            self._tallies[group] = Tally(other.count + tally.count, newest.last_at, newest.last_peer)
        elif len(self._tallies) < MOST:
            self._tallies[group] = tally


def _store(tallies: Mapping[Group, Tally]) -> None:
    # In an order, because processes that lock rows in different orders deadlock.
    groups = sorted(tallies, key=lambda group: (group.hour, group.caller_id, group.credential, group.reason))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(_ADD, [_values(group, tallies[group]) for group in groups])


def _values(group: Group, tally: Tally) -> tuple[Any, ...]:
    names = (group.caller_id, group.caller, group.tenant_id, group.tenant, group.credential, group.reason)
    # In the form of Django's models, which search for the hour.
    hour, last_at = map(connection.ops.adapt_datetimefield_value, (group.hour, tally.last_at))
    return (hour, *names, tally.count, last_at, tally.last_peer)


refused_calls = Counts()
"""The counts of this process that are not stored yet."""
