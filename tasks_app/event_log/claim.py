"""Claims: a worker gets a lease on tasks, which is written to their rows."""

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple, Self

from django.conf import settings
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    NotSupportedError,
    OperationalError,
    connection,
    transaction,
)
from django.db.backends.utils import CursorWrapper
from django.db.models import Exists, OuterRef
from msgspec import Struct
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import dumps, encode_status, event_document
from a2a.events import StatusChanged
from a2a.states import ACTIVE, RUNNABLE, TaskState
from a2a.types import Status
from tasks_app import clock
from tasks_app.database.locks import LockRefused, is_lock_refusal
from tasks_app.database.prepared import prepared
from tasks_app.database.rows import EventRow
from tasks_app.database.sessions import sqlstate
from tasks_app.database.sql import among, on_postgres, sqlite_time
from tasks_app.database.tables import EVENTS, as_json
from tasks_app.database.work import GroupResult, Work
from tasks_app.event_log.changes import event_row
from tasks_app.event_log.columns import OWN_COLUMNS, TaskColumns, columns, task_columns
from tasks_app.event_log.news import notify
from tasks_app.event_log.outbox import write_deliveries
from tasks_app.event_log.queue import (
    Demand,
    with_limit,
    without_limit,
    working_of,
)
from tasks_app.event_log.queue_postgres import (
    Choice,
    everything,
    in_turns,
    lock_agents,
    runnable_of,
)
from tasks_app.event_log.queue_sqlite import (
    choose,
)
from tasks_app.event_log.read import ReadTask, TaskRead, read_many, read_of
from tasks_app.hints import Reached
from tasks_app.models import Event, Task

log = logging.getLogger(__name__)
_TASK = Task._meta.db_table
ASIDE = timedelta(hours=1)
"""The time after which a damaged task is offered again."""
_INTEGRITY = "23"
"""The class of PostgreSQL's codes for rows that break a constraint."""
MOST_DAMAGED = 200
"""Damaged tasks that are set aside together."""


class ClaimInDoubt(OperationalError):
    """A claim may have claimed some of its tasks: the worker calls recover()."""


class Claim(Work[list[TaskRead]], Struct, frozen=True, kw_only=True):
    """A worker's claim of as many tasks as it has free slots, by kind of agent."""

    lane = "write"
    patient = True

    worker: str
    demands: tuple[Demand, ...]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[list[TaskRead]]:
        """Claim for each item. Raises ClaimInDoubt for a refused lock: a claim has several statements, and the bridge
        would repeat all of them, without the tasks that the first ones have claimed."""
        try:
            return [claim(item) for item in items]
        except OperationalError as error:
            if not is_lock_refusal(error):
                raise
            raise ClaimInDoubt("a lock was refused within the claim") from error

    @classmethod
    def after_commit(cls, items: Sequence[Self], results: Sequence[GroupResult[list[TaskRead]]]) -> None:
        """Notify the readers of the claimed tasks."""
        documents = [read.document for reads in results if isinstance(reads, list) for read in reads]
        notify([Reached(task.id, task.seq, task.state) for task in documents])


class _ClaimRow(NamedTuple):
    """A row of the claim on PostgreSQL."""

    task_id: str | None
    """None in the single row of a claim that found no task."""
    row: TaskColumns | None
    """None for a task with webhooks, which a statement of its own claims."""
    more: bool
    """Whether there are more tasks than could be chosen."""


# The database's clock decides about leases, since workers' clocks may differ. With SQLite there is one machine.
_WITH_WEBHOOKS = f"""
c as (select id, false as pushes from {_TASK} where state {among(RUNNABLE)} and id = any(%s)
    for no key update skip locked)
"""
# Two columns have the names of an earlier version: `attempt` is the fence, and `tries` is the attempt.
# 1. Choose tasks, as queue_postgres.py does: c0, c1, ... have the ids.
# 2. u: claim them. Tasks with webhooks are chosen in their turn but not claimed: their deliveries need a transaction.
# 3. e: append the event "working".
# 4. Return a row for each task, or a single row without a task.
_CLAIM_POSTGRES = f"""
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
_CLAIM_SQLITE = f"""
update {_TASK} set attempt = attempt + 1, tries = tries + 1, state = '{TaskState.WORKING}', status = %s, status_at = %s,
    last_seq = last_seq + 1, lease_owner = %s, lease_until = %s,
    deadline = strftime('%%Y-%%m-%%d %%H:%%M:%%f000', 'now', '+' || timeout || ' seconds'),
    not_before = null, run_seq = last_seq + 1, size = size + %s
where state {among(RUNNABLE)} and id in ({{marks}})
returning {OWN_COLUMNS}
"""


def claim(item: Claim) -> list[TaskRead]:
    """Give the worker a lease on runnable tasks, set them to working, and read them."""
    demands = [demand for demand in item.demands if demand.agents and demand.limit > 0]
    if not demands:
        return []
    status = Status(state=TaskState.WORKING, timestamp=clock.now())
    try:
        with prepared() as cursor:
            rows = (_claim_postgres if on_postgres() else _claim_sqlite)(cursor, item.worker, demands, status)
    except IntegrityError:
        set_aside_damaged()
        raise  # Some tasks may have been claimed: the worker calls recover(), and claims again.
    # The row of a new task is the whole task. Otherwise events, or a message in the status, must be folded.
    whole = {row.id: read_of(row, ()) for row in rows if _is_whole(row)}
    rest = [ReadTask(task_id=row.id, sight=None) for row in rows if row.id not in whole]
    return [*whole.values(), *(task for task in _read_or_retry(rest) if task)]


def _is_whole(row: TaskColumns) -> bool:
    """Return whether the snapshot lacks the event of the claim alone, and its status has no message."""
    return row.last_seq == row.snapshot_seq + 1 and '"message"' not in row.snapshot_status


def set_aside_damaged() -> None:
    """Offer runnable tasks later whose log has an event after their last one, as after an uneven restoration.

    Each claim that chooses such a task fails, and with it the claim of all others. Only a claim that was refused looks
    for them, because the search reads all runnable tasks.
    """
    later = Event.objects.filter(task_id=OuterRef("pk"), seq__gt=OuterRef("last_seq"))
    damaged = Task.objects.filter(Exists(later), state__in=[state.value for state in RUNNABLE])
    for task_id in damaged.values_list("pk", flat=True)[:MOST_DAMAGED]:
        Task.objects.filter(pk=task_id).update(not_before=clock.shared() + ASIDE)
        log.error("task %s has an event after its last one and cannot be claimed; see `manage.py a2a doctor`", task_id)


def recover(worker: str, besides: Collection[tuple[str, int]]) -> list[TaskRead]:
    """Read the worker's tasks apart from these (task, fence) pairs: those of a claim whose result it never got."""
    rows = Task.objects.filter(lease_until__isnull=False, lease_owner=worker, state=TaskState.WORKING.value)
    pairs = {pair for pair in rows.values_list("id", "fence") if pair not in besides}
    reads = _read_undamaged([ReadTask(task_id=id, sight=None) for id, _ in pairs]) if pairs else []
    return [
        read for read in reads if read and (read.document.id, read.fence) in pairs and read.document.state in ACTIVE
    ]


def _read_or_retry(items: Sequence[ReadTask]) -> list[TaskRead | None]:
    """Read tasks that were claimed, once more if the connection is cut or a plan is refused. The worker has them
    already: a task that it does not get costs an attempt in vain."""
    if not items:
        return []
    try:
        return _read_undamaged(items)
    except (OperationalError, InterfaceError, NotSupportedError):
        if connection.in_atomic_block:
            raise
        connection.close()
        return _read_undamaged(items)


def _read_undamaged(items: Sequence[ReadTask]) -> list[TaskRead | None]:
    """Read tasks that were claimed, without those whose log cannot be read. Their leases expire, and the sweep ends
    them; the runs of the others begin."""
    try:
        return read_many(items)
    except (DatabaseError, InterfaceError):
        raise
    except Exception:
        if len(items) > 1:
            half = len(items) // 2
            return _read_undamaged(items[:half]) + _read_undamaged(items[half:])
        log.exception("task %s was claimed, but its log cannot be read", items[0].task_id)
        return [None]


def _claim_postgres(cursor: CursorWrapper, worker: str, demands: Sequence[Demand], status: Status) -> list[TaskColumns]:
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
        write_deliveries(cursor, {row.id: [_working(status, row.id, row.last_seq, row.fence)] for row in rows})
    return rows


def _run_claim(cursor: CursorWrapper, choices: Sequence[Choice], worker: str, status: Status) -> list[_ClaimRow]:
    statement = _claim_statement(tuple((choice.sql, choice.name, choice.more) for choice in choices))
    working, seconds = _working(status, "", 0, 0), settings.A2A_LEASE_SECONDS
    values = [value for choice in choices for value in choice.values]
    cursor.execute(
        statement, [*values, _text(status), status.timestamp, worker, seconds, working.size, as_json([working])]
    )
    return [_ClaimRow(task_id, _row(task), more) for task_id, *task, more in cursor.fetchall()]


def _row(task: Sequence[object]) -> TaskColumns | None:
    """Return the row of a claimed task. The columns are null for a task that was only chosen."""
    row = TaskColumns._make(task)
    return row if row.id is not None else None


@lru_cache(maxsize=64)
def _claim_statement(choices: tuple[tuple[str, str, str], ...]) -> str:
    """Return the statement of a claim. There are few sets of choices, so that statements are cached."""
    return _CLAIM_POSTGRES.format(
        choices=", ".join(sql for sql, _, _ in choices),
        all=" union all ".join(f"select id, pushes from {name}" for _, name, _ in choices),
        more=" or ".join(more for _, _, more in choices),
    )


def _claim_sqlite(cursor: CursorWrapper, worker: str, demands: Sequence[Demand], status: Status) -> list[TaskColumns]:
    until = sqlite_time(status.timestamp + timedelta(seconds=settings.A2A_LEASE_SECONDS))
    head = [_text(status), sqlite_time(status.timestamp), worker, until]
    rows: list[TaskColumns] = []
    with transaction.atomic():
        for demand in demands:
            for ids in _choose_sqlite(cursor, demand, status.timestamp):
                statement = _CLAIM_SQLITE.format(marks=", ".join(["%s"] * len(ids)))
                cursor.execute(statement, [*head, _working(status, "", 0, 0).size, *ids])
                rows += map(TaskColumns._make, cursor.fetchall())
        events = [_working(status, row.id, row.last_seq, row.fence) for row in rows]
        EVENTS.write(cursor, events)
        with_webhooks = {row.id for row in rows if row.pushes}
        write_deliveries(cursor, {event.task_id: [event] for event in events if event.task_id in with_webhooks})
    return rows


def _choose_sqlite(cursor: CursorWrapper, demand: Demand, now: datetime) -> Iterator[list[str]]:
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


def _text(status: Status) -> str:
    return dumps(encode_status(status))


def _working(status: Status, task_id: str, seq: int, fence: int) -> EventRow:
    document = event_document(StatusChanged(status=status), task_id=task_id, context_id="", seq=seq)
    return event_row(document, now=status.timestamp, actor="runner", fence=fence)
