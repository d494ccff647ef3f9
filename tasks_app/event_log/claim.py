"""Claims and leases: the rest of what is written to a task's row."""

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple, Self

from django.conf import settings
from django.db import InterfaceError, NotSupportedError, OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from msgspec import Struct
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import dumps, encode_status, event_document
from a2a.events import StatusChanged
from a2a.states import ACTIVE, RUNNABLE, TaskState
from a2a.types import Status
from tasks_app import clock
from tasks_app.database.locks import LockRefused, is_lock_refusal
from tasks_app.database.prepared import prepared
from tasks_app.database.rows import EVENTS, EventRow, among, as_json, on_postgres, sqlite_time
from tasks_app.database.work import GroupResult, Work
from tasks_app.event_log.columns import OWN_COLUMNS, TaskColumns, columns, task_columns
from tasks_app.event_log.news import notify
from tasks_app.event_log.outbox import write_deliveries
from tasks_app.event_log.queue import (
    Choice,
    Want,
    choose,
    everything,
    limited,
    lock_agents,
    runnable_of,
    unlimited,
    wanted,
    working_of,
)
from tasks_app.event_log.read import ReadTask, TaskRead, one_of, read_many, read_of
from tasks_app.hints import Reached
from tasks_app.models import Task

log = logging.getLogger(__name__)
_TASK = Task._meta.db_table


class Claim(Work[list[TaskRead]], Struct, frozen=True, kw_only=True):
    """A worker's wish for as many tasks as it has slots, kind by kind."""

    lane = "write"
    patient = True

    worker: str
    wants: tuple[Want, ...]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[list[TaskRead]]:
        return [claim(item) for item in items]

    @classmethod
    def after_commit(cls, items: Sequence[Self], results: Sequence[GroupResult[list[TaskRead]]]) -> None:
        """Notify the followers of the tasks that are worked on now."""
        documents = [read.document for reads in results if isinstance(reads, list) for read in reads]
        notify([Reached(task.id, task.seq, task.state) for task in documents])


class Renew(Work[set[str]], Struct, frozen=True, kw_only=True):
    """A heartbeat: the worker still has these (task, fence) pairs."""

    lane = "write"
    patient = True

    worker: str
    held: tuple[tuple[str, int], ...]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[set[str]]:
        return [renew(item) for item in items]


class _Chosen(NamedTuple):
    """A row of the claim on PostgreSQL."""

    task_id: str | None
    """None in the one row of a claim that found no task."""
    row: TaskColumns | None
    """None for a task with webhooks, which is claimed by itself."""
    more: bool
    """There is more than could be chosen."""


# The database's clock decides about leases, since workers' clocks may differ; SQLite is on the one machine.
_THESE = f"""
c as (select id, false as pushes from {_TASK} where state {among(RUNNABLE)} and id = any(%s)
    for no key update skip locked)
"""
# Tasks with webhooks are chosen in their turn but left as they are: their deliveries need a transaction.
_CLAIM_POSTGRES = f"""
with recursive {{wanted}},
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


def claim(wish: Claim) -> list[TaskRead]:
    """Gives the worker a lease on runnable tasks, sets them working, and reads them."""
    wants = [want for want in wish.wants if want.agents and want.limit > 0]
    if not wants:
        return []
    status = Status(state=TaskState.WORKING, timestamp=clock.now())
    with prepared() as cursor:
        rows = (_claim_postgres if on_postgres() else _claim_sqlite)(cursor, wish.worker, wants, status)
    # Of a new task the row says all. What was said before, or is in the status, must be folded.
    whole = {row.id: read_of(row, ()) for row in rows if _says_all(row)}
    rest = [ReadTask(task_id=row.id, sight=None) for row in rows if row.id not in whole]
    return [*whole.values(), *(task for task in _read_surely(rest) if task)]


def _says_all(row: TaskColumns) -> bool:
    """Tell whether only the event of the claim is missing in the snapshot, and its status had no message."""
    return row.last_seq == row.snapshot_seq + 1 and '"message"' not in row.snapshot_status


def leased(worker: str, besides: Collection[tuple[str, int]]) -> list[TaskRead]:
    """Tasks that are the worker's beside these (task, fence) pairs: of a claim whose answer it never got."""
    rows = Task.objects.filter(lease_until__isnull=False, lease_owner=worker, state=TaskState.WORKING.value)
    lost = {pair for pair in rows.values_list("id", "fence") if pair not in besides}
    reads = read_many([ReadTask(task_id=id, sight=None) for id, _ in lost]) if lost else []
    return [read for read in reads if read and (read.document.id, read.fence) in lost and read.document.state in ACTIVE]


def _read_surely(asked: Sequence[ReadTask]) -> list[TaskRead | None]:
    """Once more if the connection is cut just now, or a plan refused: these tasks are this worker's already, and those
    that it does not hear of are tried in vain."""
    if not asked:
        return []
    try:
        return read_many(asked)
    except (OperationalError, InterfaceError, NotSupportedError):
        if connection.in_atomic_block:
            raise
        connection.close()
        return read_many(asked)


def _claim_postgres(cursor: CursorWrapper, worker: str, wants: Sequence[Want], status: Status) -> list[TaskColumns]:
    rows: list[TaskColumns] = []
    left = []
    for want in wants:
        found = _claim_limited(cursor, worker, want, status) if want.concurrency else []
        rows += found
        left.append(replace(unlimited(want), limit=want.limit - len(found)))
    return rows + _claim_wanted(cursor, worker, left, status)


def _claim_limited(cursor: CursorWrapper, worker: str, want: Want, status: Status) -> list[TaskColumns]:
    """Tasks of agents that may have so many runs in all processes together: counted under a lock, or two processes
    would both take the last one."""
    agents = runnable_of(cursor, list(want.concurrency))
    if not agents:
        return []
    rows: list[TaskColumns] = []
    try:
        with transaction.atomic():
            lock_agents(cursor, agents)
            for part in limited(want, working_of(cursor, agents)):
                if part.agents[0] in agents:
                    fitting = replace(part, limit=min(part.limit, want.limit - len(rows)))
                    rows += _claim_wanted(cursor, worker, [fitting], status)
    except OperationalError as error:
        if not is_lock_refusal(error):
            raise
        log.info("tasks of %s are claimed by another process just now", ", ".join(agents))
        return []
    return rows


def _claim_wanted(cursor: CursorWrapper, worker: str, wants: Sequence[Want], status: Status) -> list[TaskColumns]:
    """Claim all that there is, or, of what is more than there is room for, what has the turn."""
    asked = [want for want in wants if want.agents and want.limit > 0]
    if asked and all(want.spacious > 0 for want in asked):
        choices = [everything(want, place) for place, want in enumerate(asked)]
        rows, more = _claim_choices(cursor, choices, worker, status)
        if not more:
            return rows
        agents = Counter(row.agent for row in rows)
        taken = [sum(agents[name] for name in want.agents) for want in asked]
        left = [replace(want, limit=want.limit - number) for want, number in zip(asked, taken, strict=True)]
        return rows + _claim_wanted_in_turns(cursor, worker, [want for want in left if want.limit > 0], status)
    return _claim_wanted_in_turns(cursor, worker, asked, status)


def _claim_wanted_in_turns(
    cursor: CursorWrapper, worker: str, wants: Sequence[Want], status: Status
) -> list[TaskColumns]:
    choices = [wanted(want, place) for place, want in enumerate(wants)]
    return _claim_choices(cursor, choices, worker, status)[0] if choices else []


def _claim_choices(
    cursor: CursorWrapper, choices: Sequence[Choice], worker: str, status: Status
) -> tuple[list[TaskColumns], bool]:
    """Claim what is chosen, and say whether there is more than could be chosen."""
    found = _claim_chosen(cursor, choices, worker, status)
    more = any(one.more for one in found)
    rows = [one.row for one in found if one.row is not None]
    pushing = [one.task_id for one in found if one.row is None and one.task_id is not None]
    try:
        while pushing:
            try:
                return rows + _claim_pushing(cursor, pushing, worker, status), more
            except LockRefused as held:
                pushing = [task_id for task_id in pushing if task_id not in held.tasks]
    except Exception as error:
        if isinstance(error, OperationalError | InterfaceError) and not is_lock_refusal(error):
            raise  # Whether they were claimed is not known: the worker asks for all that is its own.
        # What was claimed before is this worker's already, and must be run.
        log.exception("%d tasks with webhooks were not claimed; they are offered again", len(pushing))
    return rows, more


def _claim_pushing(cursor: CursorWrapper, pushing: Sequence[str], worker: str, status: Status) -> list[TaskColumns]:
    """Claim tasks with webhooks. Raises LockRefused for tasks that have a webhook whose row is locked."""
    with transaction.atomic():
        found = _claim_chosen(cursor, [Choice(_THESE, "c", [pushing])], worker, status)
        rows = [one.row for one in found if one.row is not None]
        write_deliveries(cursor, {row.id: [_working(status, row.id, row.last_seq, row.fence)] for row in rows})
    return rows


def _claim_chosen(cursor: CursorWrapper, choices: Sequence[Choice], worker: str, status: Status) -> list[_Chosen]:
    statement = _claim_statement(tuple((choice.sql, choice.name, choice.more) for choice in choices))
    working, seconds = _working(status, "", 0, 0), settings.A2A_LEASE_SECONDS
    values = [value for choice in choices for value in choice.values]
    cursor.execute(
        statement, [*values, _text(status), status.timestamp, worker, seconds, working.size, as_json([working])]
    )
    return [_Chosen(task_id, _row(task), more) for task_id, *task, more in cursor.fetchall()]


def _row(task: Sequence[Any]) -> TaskColumns | None:
    """Return the row of a task that was claimed; its columns are null for one that was only chosen."""
    row = TaskColumns._make(task)
    return row if row.id is not None else None


@lru_cache(maxsize=64)
def _claim_statement(choices: tuple[tuple[str, str, str], ...]) -> str:
    """Return the statement of a claim, made once for each set of choices."""
    return _CLAIM_POSTGRES.format(
        wanted=", ".join(sql for sql, _, _ in choices),
        all=" union all ".join(f"select id, pushes from {name}" for _, name, _ in choices),
        more=" or ".join(more for _, _, more in choices),
    )


def _claim_sqlite(cursor: CursorWrapper, worker: str, wants: Sequence[Want], status: Status) -> list[TaskColumns]:
    until = sqlite_time(status.timestamp + timedelta(seconds=settings.A2A_LEASE_SECONDS))
    head = [_text(status), sqlite_time(status.timestamp), worker, until]
    rows: list[TaskColumns] = []
    with transaction.atomic():
        for want in wants:
            for ids in _chosen_sqlite(cursor, want, status.timestamp):
                statement = _CLAIM_SQLITE.format(marks=", ".join(["%s"] * len(ids)))
                cursor.execute(statement, [*head, _working(status, "", 0, 0).size, *ids])
                rows += map(TaskColumns._make, cursor.fetchall())
        events = [_working(status, row.id, row.last_seq, row.fence) for row in rows]
        EVENTS.write(cursor, events)
        flagged = {row.id for row in rows if row.pushes}
        write_deliveries(cursor, {event.task_id: [event] for event in events if event.task_id in flagged})
    return rows


def _chosen_sqlite(cursor: CursorWrapper, want: Want, now: datetime) -> Iterator[list[str]]:
    """The tasks for a want, of agents with a limit first; each part is claimed before the next is chosen."""
    parts = limited(want, working_of(cursor, list(want.concurrency))) if want.concurrency else []
    left = want.limit
    for part in [*parts, unlimited(want)]:
        if (
            part.agents
            and left > 0
            and (ids := choose(cursor, replace(part, limit=min(part.limit, left)), sqlite_time(now)))
        ):
            left -= len(ids)
            yield ids


def _text(status: Status) -> str:
    return dumps(encode_status(status))


def _working(status: Status, task_id: str, seq: int, fence: int) -> EventRow:
    stored = event_document(StatusChanged(status=status), task_id=task_id, context_id="", seq=seq)
    return EventRow(
        task_id=task_id, seq=seq, kind=stored.kind, payload=stored.payload, state=stored.state,
        actor="runner",
        created_at=status.timestamp, fence=fence,
    )  # fmt: skip


def renew(wish: Renew) -> set[str]:
    """Renews the leases; the ids of the tasks that are still the worker's.

    A row that somebody else has locked is left for the next beat: waiting for it would hold up every other write.
    """
    held, values = one_of("(id || ':' || attempt)", [f"{task_id}:{fence}" for task_id, fence in wish.held])
    ids, more = one_of("id", [task_id for task_id, _ in wish.held])
    mine = f"select id from {_TASK} where {ids} and {held} and lease_owner = %s and state {among(ACTIVE)}"
    seconds = settings.A2A_LEASE_SECONDS
    with prepared() as cursor:
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
