"""Claims on SQLite: demand by demand, in one transaction."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.backends.utils import CursorWrapper
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import dumps, encode_status
from a2a.states import RUNNABLE, TaskState
from a2a.types import Status
from tasks_app.database.sql import among, sqlite_time
from tasks_app.database.tables import EVENTS
from tasks_app.event_log.changes import working_row
from tasks_app.event_log.columns import OWN_COLUMNS, TaskColumns
from tasks_app.event_log.outbox import write_deliveries
from tasks_app.event_log.queue import Demand, with_limit, without_limit, working_of
from tasks_app.event_log.queue_sqlite import choose
from tasks_app.models import Task

_TASK = Task._meta.db_table
# The machine's clock decides about leases: with SQLite there is only one machine.
_CLAIM = f"""
update {_TASK} set attempt = attempt + 1, tries = tries + 1, state = '{TaskState.WORKING}', status = %s, status_at = %s,
    last_seq = last_seq + 1, lease_owner = %s, lease_until = %s,
    deadline = strftime('%%Y-%%m-%%d %%H:%%M:%%f000', 'now', '+' || timeout || ' seconds'),
    not_before = null, run_seq = last_seq + 1, size = size + %s
where state {among(RUNNABLE)} and id in ({{marks}})
returning {OWN_COLUMNS}
"""


def claim_tasks(cursor: CursorWrapper, worker: str, demands: Sequence[Demand], status: Status) -> list[TaskColumns]:
    """Claim tasks in demand, of agents with a limit first; return their rows."""
    until = sqlite_time(status.timestamp + timedelta(seconds=settings.A2A_LEASE_SECONDS))
    head = [dumps(encode_status(status)), sqlite_time(status.timestamp), worker, until]
    rows: list[TaskColumns] = []
    with transaction.atomic():
        for demand in demands:
            for ids in _choose_in_parts(cursor, demand, status.timestamp):
                statement = _CLAIM.format(marks=", ".join(["%s"] * len(ids)))
                cursor.execute(statement, [*head, working_row(status).size, *ids])
                rows += map(TaskColumns._make, cursor.fetchall())
        events = [working_row(status, row.id, row.last_seq, row.fence) for row in rows]
        EVENTS.write(cursor, events)
        with_webhooks = {row.id for row in rows if row.pushes}
        write_deliveries(cursor, {event.task_id: [event] for event in events if event.task_id in with_webhooks})
    return rows


def _choose_in_parts(cursor: CursorWrapper, demand: Demand, now: datetime) -> Iterator[list[str]]:
    """Yield tasks in demand, of agents with a limit first. The caller claims each part before the next is chosen."""
    parts = with_limit(demand, working_of(cursor, list(demand.concurrency))) if demand.concurrency else []
    room = demand.limit
    for part in [*parts, without_limit(demand)]:
        if (
            part.agents
            and room > 0
            and (ids := choose(cursor, replace(part, limit=min(part.limit, room)), sqlite_time(now)))
        ):
            room -= len(ids)
            yield ids
