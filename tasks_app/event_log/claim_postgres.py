"""Claims on PostgreSQL: one statement chooses the tasks and claims them, apart from those with webhooks."""

import logging
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.backends.utils import CursorWrapper
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import dumps, encode_status
from a2a.states import RUNNABLE, TaskState
from a2a.types import Status
from tasks_app.database.locks import LockRefused, is_lock_refusal
from tasks_app.database.sessions import sqlstate
from tasks_app.database.sql import among
from tasks_app.database.tables import EVENTS, as_json
from tasks_app.event_log.changes import working_row
from tasks_app.event_log.columns import TaskColumns, columns, task_columns
from tasks_app.event_log.damage import set_aside_damaged
from tasks_app.event_log.outbox import write_deliveries
from tasks_app.event_log.queue import Demand, with_limit, without_limit, working_of
from tasks_app.event_log.queue_postgres import Choice, everything, in_turns, lock_agents, runnable_of
from tasks_app.models import Task

log = logging.getLogger(__name__)
_TASK = Task._meta.db_table
_INTEGRITY = "23"
"""The class of PostgreSQL's codes for rows that break a constraint."""


class _ClaimRow(NamedTuple):
    """A row that the statement of a claim returns."""

    task_id: str | None
    """None in the single row of a claim that found no task."""
    row: TaskColumns | None
    """None for a task with webhooks, which a statement of its own claims."""
    more: bool
    """Whether there are more tasks than could be chosen."""


_WITH_WEBHOOKS = f"""
c as (select id, false as pushes from {_TASK} where state {among(RUNNABLE)} and id = any(%s)
    for no key update skip locked)
"""
# The database's clock decides about leases, since workers' clocks may differ.
# Two columns have the names of an earlier version: `attempt` is the fence, and `tries` is the attempt.
# 1. Choose tasks, as queue_postgres.py does: c0, c1, ... have the ids.
# 2. u: claim them. Tasks with webhooks are chosen in their turn but not claimed: their deliveries need a transaction.
# 3. e: append the event "working".
# 4. Return a row for each task, or a single row without a task.
_CLAIM = f"""
with recursive {{choices}},
u as (update {_TASK} t set attempt = attempt + 1, tries = tries + 1, state = '{TaskState.WORKING}', status = %s,
        status_at = %s, last_seq = last_seq + 1, lease_owner = %s, lease_until = now() + make_interval(secs => %s),
        deadline = now() + make_interval(secs => timeout), not_before = null, run_seq = last_seq + 1,
        size = size + %s
    from ({{all}}) c where t.id = c.id and not c.pushes returning {task_columns()}),
e as (insert into {EVENTS.name} ({EVENTS.list})
    select t.id, t.last_seq, x.kind, x.payload, x.state, x.actor, x.created_at, x.exchange_id, t.fence, x.size
    from u t, jsonb_to_recordset(%s::jsonb) as x({EVENTS.record}))
select c.id, {columns(TaskColumns._fields)}, k.more
from (select {{more}} as more) k left join ({{all}}) c on true left join u t on t.id = c.id
"""


def claim_tasks(cursor: CursorWrapper, worker: str, demands: Sequence[Demand], status: Status) -> list[TaskColumns]:
    """Claim tasks in demand, of agents with a limit first; return their rows."""
    rows: list[TaskColumns] = []
    others = []
    for demand in demands:
        part = _claim_with_limit(cursor, worker, demand, status) if demand.concurrency else []
        rows += part
        others.append(replace(without_limit(demand), limit=demand.limit - len(part)))
    return rows + _claim_demands(cursor, worker, others, status)


def _claim_with_limit(cursor: CursorWrapper, worker: str, demand: Demand, status: Status) -> list[TaskColumns]:
    """Claim tasks of agents with a limit on their runs in all processes together. The runs are counted under a lock, or
    two processes would both take the last place."""
    agents = runnable_of(cursor, list(demand.concurrency))
    if not agents:
        return []
    rows: list[TaskColumns] = []
    try:
        with transaction.atomic():
            lock_agents(cursor, agents)
            for part in with_limit(demand, working_of(cursor, agents)):
                if part.agents[0] in agents:
                    rest = replace(part, limit=min(part.limit, demand.limit - len(rows)))
                    rows += _claim_demands(cursor, worker, [rest], status)
    except OperationalError as error:
        if not is_lock_refusal(error):
            raise
        log.info("another process is claiming tasks of %s", ", ".join(agents))
        return []
    return rows


def _claim_demands(cursor: CursorWrapper, worker: str, demands: Sequence[Demand], status: Status) -> list[TaskColumns]:
    """Claim all runnable tasks, or those of owners in turn if there are more than there is room for."""
    open_demands = [demand for demand in demands if demand.agents and demand.limit > 0]
    if open_demands and all(demand.spacious > 0 for demand in open_demands):
        choices = [everything(demand, place) for place, demand in enumerate(open_demands)]
        rows, more = _claim_choices(cursor, choices, worker, status)
        if not more:
            return rows
        agents = Counter(row.agent for row in rows)
        counts = [sum(agents[name] for name in demand.agents) for demand in open_demands]
        rests = [replace(one, limit=one.limit - count) for one, count in zip(open_demands, counts, strict=True)]
        return rows + _claim_in_turns(cursor, worker, [rest for rest in rests if rest.limit > 0], status)
    return _claim_in_turns(cursor, worker, open_demands, status)


def _claim_in_turns(cursor: CursorWrapper, worker: str, demands: Sequence[Demand], status: Status) -> list[TaskColumns]:
    choices = [in_turns(demand, place) for place, demand in enumerate(demands)]
    return _claim_choices(cursor, choices, worker, status)[0] if choices else []


def _claim_choices(
    cursor: CursorWrapper, choices: Sequence[Choice], worker: str, status: Status
) -> tuple[list[TaskColumns], bool]:
    """Claim the chosen tasks; return their rows, and whether there are more than could be chosen."""
    results = _run_claim(cursor, choices, worker, status)
    more = any(one.more for one in results)
    rows = [one.row for one in results if one.row is not None]
    ids = [one.task_id for one in results if one.row is None and one.task_id is not None]
    try:
        while ids:
            try:
                return rows + _claim_with_webhooks(cursor, ids, worker, status), more
            except LockRefused as refusal:
                ids = [task_id for task_id in ids if task_id not in refusal.tasks]
    except Exception as error:
        if isinstance(error, OperationalError | InterfaceError) and not is_lock_refusal(error):
            raise  # They may have been claimed or not: the worker calls recover().
        # The worker has the other tasks already, and must run them.
        log.exception("%d tasks with webhooks were not claimed; they are offered again", len(ids))
        if sqlstate(error).startswith(_INTEGRITY):
            set_aside_damaged()
    return rows, more


def _claim_with_webhooks(cursor: CursorWrapper, ids: Sequence[str], worker: str, status: Status) -> list[TaskColumns]:
    """Claim tasks with webhooks. Raises LockRefused with the tasks that have a webhook whose row is locked."""
    with transaction.atomic():
        results = _run_claim(cursor, [Choice(_WITH_WEBHOOKS, "c", [ids])], worker, status)
        rows = [one.row for one in results if one.row is not None]
        write_deliveries(cursor, {row.id: [working_row(status, row.id, row.last_seq, row.fence)] for row in rows})
    return rows


def _run_claim(cursor: CursorWrapper, choices: Sequence[Choice], worker: str, status: Status) -> list[_ClaimRow]:
    statement = _claim_statement(tuple((choice.sql, choice.name, choice.more) for choice in choices))
    working, text, seconds = working_row(status), dumps(encode_status(status)), settings.A2A_LEASE_SECONDS
    values = [value for choice in choices for value in choice.values]
    cursor.execute(statement, [*values, text, status.timestamp, worker, seconds, working.size, as_json([working])])
    return [_ClaimRow(task_id, _row(task), more) for task_id, *task, more in cursor.fetchall()]


def _row(task: Sequence[object]) -> TaskColumns | None:
    """Return the row of a claimed task. The columns are null for a task that was only chosen."""
    row = TaskColumns._make(task)
    return row if row.id is not None else None


@lru_cache(maxsize=64)
def _claim_statement(choices: tuple[tuple[str, str, str], ...]) -> str:
    """Return the statement of a claim. There are few sets of choices, so that statements are cached."""
    return _CLAIM.format(
        choices=", ".join(sql for sql, _, _ in choices),
        all=" union all ".join(f"select id, pushes from {name}" for _, name, _ in choices),
        more=" or ".join(more for _, _, more in choices),
    )
