"""Leases of tasks after the claim: they are renewed, and all of them end at the start of the only process."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Self

from django.conf import settings
from msgspec import Struct

from a2a.states import ACTIVE
from tasks_app import clock
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import among, on_postgres, one_of, sqlite_time
from tasks_app.database.work import Work
from tasks_app.models import Task

_TASK = Task._meta.db_table


class Renew(Work[set[str]], Struct, frozen=True, kw_only=True):
    """A heartbeat: the worker still runs the tasks of these (task, fence) pairs."""

    lane = "write"
    patient = True

    worker: str
    pairs: tuple[tuple[str, int], ...]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[set[str]]:
        return [renew(item) for item in items]


def renew(item: Renew) -> set[str]:
    """Renew the leases; return the ids of the tasks that are still the worker's.

    A row that another transaction has locked is left for the next beat: waiting for it would hold up every other write.
    """
    pairs, values = one_of("(id || ':' || attempt)", [f"{task_id}:{fence}" for task_id, fence in item.pairs])
    ids, more = one_of("id", [task_id for task_id, _ in item.pairs])
    mine = f"select id from {_TASK} where {ids} and {pairs} and lease_owner = %s and state {among(ACTIVE)}"
    seconds = settings.A2A_LEASE_SECONDS
    with prepared() as cursor:
        if on_postgres():
            cursor.execute(
                f"update {_TASK} set lease_until = now() + make_interval(secs => %s) "
                f"where id in ({mine} for no key update skip locked)",
                [seconds, *more, *values, item.worker],
            )
        else:
            until = sqlite_time(clock.now() + timedelta(seconds=seconds))
            cursor.execute(
                f"update {_TASK} set lease_until = %s where id in ({mine})", [until, *more, *values, item.worker]
            )
        cursor.execute(mine, [*more, *values, item.worker])
        return {task_id for (task_id,) in cursor.fetchall()}


def release_all() -> int:
    """End every lease at once, at the start of the only process."""
    return Task.objects.filter(lease_until__isnull=False).update(lease_until=datetime(2000, 1, 1, tzinfo=UTC))
