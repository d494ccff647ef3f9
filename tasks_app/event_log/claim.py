"""Claims, leases and snapshots: the rest of what is written to a task's row."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from msgspec import Struct

from a2a.dialects.protojson import dumps, encode_status, event_document
from a2a.events import StatusChanged
from a2a.states import TaskState
from a2a.types import Status
from tasks_app import clock
from tasks_app.event_log.read import ReadTask, TaskRead, one_of, read_many
from tasks_app.models import Task
from tasks_app.rows import EVENTS, EventRow, on_postgres, sqlite_time

_TASK = Task._meta.db_table


class Claim(Struct, frozen=True, kw_only=True):
    """Runnable tasks of these agents and queues, at most so many, for this worker."""

    worker: str
    agents: tuple[str, ...]
    queues: tuple[str, ...]
    limit: int


class Renew(Struct, frozen=True, kw_only=True):
    """A heartbeat: the worker still has these (task, attempt) pairs."""

    worker: str
    held: tuple[tuple[str, int], ...]


class Refresh(Struct, frozen=True, kw_only=True):
    """Fold the tail of a task into its snapshot."""

    task_id: str


# The database's clock decides about leases, since workers' clocks may differ; SQLite is on the one machine.
_CLAIM_POSTGRES = f"""
with c as (select id from {_TASK} where state = 'submitted' and {{where}}
        order by priority desc, created_at limit %s for no key update skip locked)
update {_TASK} t set attempt = attempt + 1, tries = tries + 1, state = 'working', status = %s, status_at = %s,
    last_seq = last_seq + 1, lease_owner = %s, lease_until = now() + make_interval(secs => %s),
    deadline = now() + make_interval(secs => timeout)
from c where t.id = c.id returning t.id, t.last_seq, t.attempt
"""
_CLAIM_SQLITE = f"""
update {_TASK} set attempt = attempt + 1, tries = tries + 1, state = 'working', status = %s, status_at = %s,
    last_seq = last_seq + 1, lease_owner = %s, lease_until = %s,
    deadline = strftime('%%Y-%%m-%%d %%H:%%M:%%f000', 'now', '+' || timeout || ' seconds')
where id in (select id from {_TASK} where state = 'submitted' and {{where}}
        order by priority desc, created_at limit %s)
returning id, last_seq, attempt
"""


def claim(wish: Claim) -> list[TaskRead]:
    """Gives the worker a lease on runnable tasks, sets them working, and reads them."""
    if wish.limit <= 0 or not wish.agents:
        return []
    status = Status(state=TaskState.WORKING, timestamp=clock.now())
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(*_claim_statement(wish, status))
        claimed = cursor.fetchall()
        EVENTS.write(cursor, [_working(status, *row) for row in claimed])
    return [task for task in read_many([ReadTask(task_id=row[0], sight=None) for row in claimed]) if task]


def _claim_statement(wish: Claim, status: Status) -> tuple[str, list[Any]]:
    agents, names = one_of("agent", wish.agents)
    queues, more = one_of("queue", wish.queues)
    where, values = f"{agents} and {queues}", [*names, *more]
    text, seconds = dumps(encode_status(status)), settings.A2A_LEASE_SECONDS
    if on_postgres():
        return _CLAIM_POSTGRES.format(where=where), [*values, wish.limit, text, status.timestamp, wish.worker, seconds]
    until = sqlite_time(status.timestamp + timedelta(seconds=seconds))
    head = [text, sqlite_time(status.timestamp), wish.worker, until]
    return _CLAIM_SQLITE.format(where=where), [*head, *values, wish.limit]


def _working(status: Status, task_id: str, seq: int, attempt: int) -> EventRow:
    stored = event_document(StatusChanged(status=status), task_id=task_id, context_id="", seq=seq)
    return EventRow(
        task_id=task_id, seq=seq, kind=stored.kind, payload=stored.payload, state=stored.state,
        actor="runner",
        created_at=status.timestamp, attempt=attempt,
    )  # fmt: skip


def renew(wish: Renew) -> set[str]:
    """Renews the leases; the ids of the tasks that are still the worker's.

    A row that somebody else has locked is left for the next beat: waiting for it would hold up every other write.
    """
    held, values = one_of("(id || ':' || attempt)", [f"{task_id}:{attempt}" for task_id, attempt in wish.held])
    ids, more = one_of("id", [task_id for task_id, _ in wish.held])
    mine = f"select id from {_TASK} where {ids} and {held} and lease_owner = %s and state = 'working'"
    seconds = settings.A2A_LEASE_SECONDS
    with connection.cursor() as cursor:
        if on_postgres():
            cursor.execute(
                f"update {_TASK} set lease_until = now() + make_interval(secs => %s) "
                f"where id in ({mine} for no key update skip locked)",
                [seconds, *more, *values, wish.worker],
            )
        else:
            until = sqlite_time(clock.now() + timedelta(seconds=seconds))
            cursor.execute(
                f"update {_TASK} set lease_until = %s where id in ({mine})", [until, *more, *values, wish.worker]
            )
        cursor.execute(mine, [*more, *values, wish.worker])
        return {task_id for (task_id,) in cursor.fetchall()}


def release_all() -> int:
    """Ends every lease at once: at the start of the only process that there is."""
    return Task.objects.filter(lease_until__isnull=False).update(lease_until=datetime(2000, 1, 1, tzinfo=UTC))


def refresh_many(items: Sequence[Refresh]) -> list[None]:
    """Folds the tails; a snapshot never goes back."""
    ids = sorted({item.task_id for item in items})
    reads = [read for read in read_many([ReadTask(task_id=task_id, sight=None) for task_id in ids]) if read]
    with transaction.atomic(), connection.cursor() as cursor:
        for read in reads:
            stored = read.document
            cursor.execute(
                f"update {_TASK} set snapshot_seq = %s, snapshot_status = %s, artifacts = %s, history = %s "
                "where id = %s and snapshot_seq < %s",
                (stored.seq, stored.status, stored.artifacts, stored.history, stored.id, stored.seq),
            )
    return [None for _ in items]
