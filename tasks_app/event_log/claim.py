"""Claims: a worker gets a lease on tasks, which is written to their rows (claim_postgres.py, claim_sqlite.py)."""

import logging
from collections.abc import Collection, Sequence
from typing import Self

from django.db import DatabaseError, IntegrityError, InterfaceError, NotSupportedError, OperationalError, connection
from msgspec import Struct

from a2a.states import ACTIVE, TaskState
from a2a.types import Status
from tasks_app import clock
from tasks_app.database.locks import is_lock_refusal
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import on_postgres
from tasks_app.database.work import GroupResult, Work
from tasks_app.event_log import claim_postgres, claim_sqlite
from tasks_app.event_log.columns import TaskColumns
from tasks_app.event_log.damage import set_aside_damaged
from tasks_app.event_log.news import notify
from tasks_app.event_log.queue import Demand
from tasks_app.event_log.read import ReadTask, TaskRead, read_many, read_of
from tasks_app.hints import Reached
from tasks_app.models import Task

log = logging.getLogger(__name__)


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


def claim(item: Claim) -> list[TaskRead]:
    """Give the worker a lease on runnable tasks, set them to working, and read them."""
    demands = [demand for demand in item.demands if demand.agents and demand.limit > 0]
    if not demands:
        return []
    status = Status(state=TaskState.WORKING, timestamp=clock.now())
    try:
        with prepared() as cursor:
            claim_tasks = claim_postgres.claim_tasks if on_postgres() else claim_sqlite.claim_tasks
            rows = claim_tasks(cursor, item.worker, demands, status)
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
