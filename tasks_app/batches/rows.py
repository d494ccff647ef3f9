"""The rows of batches and of their items. A process goes on with a batch until `due_at`, and puts that time off."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Self

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from msgspec import Struct

from a2a.dialects.json.json_1_0 import decode_status
from a2a.errors import RateLimited
from a2a.states import ACTIVE, INTERRUPTED, RUNNABLE, TERMINAL, TaskState
from tasks_app import clock
from tasks_app.callers.access import Caller, caller_of_work
from tasks_app.database.locks import LockRefused
from tasks_app.database.work import GroupResult, Work
from tasks_app.event_log import Append, Appended, Create, append_many
from tasks_app.event_log.create import write_new
from tasks_app.limits.caps import check_cap
from tasks_app.models import Batch, BatchItem, Task

BATCH_AGENT = ":batch"
"""The name in place of an agent in the task of a batch. No agent can have it."""
REST = 30
"""Seconds after which an owner with too many open batches may try again."""


class Turn(Struct, frozen=True, kw_only=True):
    """A batch that this process goes on with."""

    id: str
    agent: str
    operation: str
    size: int
    max_concurrent: int
    batch_size: int
    optimization: str
    caller: Caller


class Progress(Struct, frozen=True, kw_only=True):
    """How far a batch has come."""

    state: TaskState
    """The state of its task."""
    context_id: str
    cursor: int
    ended: int
    failed: int
    reported: int
    """The number of ended items in the last report."""
    at_work: tuple[str, ...]
    """The tasks of items that are queued or at work."""
    waiting: tuple[str, ...]
    """The tasks of items that wait for an answer of the caller. They take no place."""


class FindAgent(Work[str], Struct, frozen=True):
    """The agent of the items of a batch. If the batch was deleted, it is BATCH_AGENT, the agent of its own task."""

    lane = "read"
    repeatable = True

    batch_id: str

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[str]:
        ids = [item.batch_id for item in items]
        agents = dict(Batch.objects.filter(pk__in=ids).values_list("pk", "agent"))
        return [agents.get(batch_id, BATCH_AGENT) for batch_id in ids]


class Begin(Work[None], Struct, frozen=True, kw_only=True):
    """A new batch with its items and its task. The result is RateLimited if its owner has too many open ones."""

    lane = "write"
    repeatable = True

    batch: Batch
    items: Sequence[BatchItem]
    create: Create

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[None]]:
        """Store each batch in a transaction of its own: a refusal of one must not undo the others."""
        return [_begin(item) for item in items]

    @classmethod
    def after_commit(cls, items: Sequence[Self], results: Sequence[GroupResult[None]]) -> None:
        Create.after_commit([item.create for item in items], results)


def _begin(item: Begin) -> GroupResult[None]:
    """Store a batch, unless it is stored already."""
    try:
        with transaction.atomic():
            if not write_new([item.create]):
                return None  # This is a repetition after a commit that was in doubt, and was done.
            open_ones = Batch.objects.filter(owner_id=item.batch.owner_id, due_at__isnull=False)
            check_cap(item.batch.owner_id, open_ones, settings.A2A_OWNER_BATCHES, "open batches", REST)
            item.batch.save(force_insert=True)
            BatchItem.objects.bulk_create(item.items, batch_size=500)
    except RateLimited as refusal:
        return refusal
    return None


def take_turns(most: int, besides: Collection[str]) -> list[Turn]:
    """Take batches that are due, for as long as a lease lasts. A row that another transaction has locked is left for
    later."""
    now = clock.shared()
    with transaction.atomic():
        rows = Batch.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        rows = rows.filter(due_at__lte=now).exclude(pk__in=list(besides)).order_by("due_at", "pk")
        own = [row for row in rows.select_related("owner__tenant")[:most] if _take(row, now)]
    # After the commit: a damaged row must not undo the take, or each round would meet it again.
    return [_turn(row) for row in own]


def _take(row: Batch, now: datetime) -> bool:
    """Take a batch, and return whether it was still there to be taken."""
    return bool(Batch.objects.filter(pk=row.pk, due_at=row.due_at).update(due_at=_lease(now)))


def _lease(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.A2A_LEASE_SECONDS)


def _turn(row: Batch) -> Turn:
    return Turn(
        id=row.pk,
        agent=row.agent,
        operation=row.operation,
        size=row.size,
        max_concurrent=row.max_concurrent,
        batch_size=row.batch_size,
        optimization=row.optimization,
        caller=caller_of_work(row),
    )


def caller_now(batch_id: str) -> Caller:
    """Return the caller of a batch with the permissions of this moment. A batch may go on for hours."""
    return caller_of_work(Batch.objects.select_related("owner__tenant").get(pk=batch_id))


def renew(batch_id: str) -> bool:
    """Keep a batch from other processes for the time of a lease. Return False if it is over."""
    rows = Batch.objects.filter(pk=batch_id, due_at__isnull=False)
    return bool(rows.update(due_at=_lease(clock.shared())))


def give_back(batch_id: str, seconds: float) -> None:
    """Let any process go on with a batch after that time, behind the batches that are due before."""
    due_at = clock.shared() + timedelta(seconds=seconds)
    Batch.objects.filter(pk=batch_id, due_at__isnull=False).update(due_at=due_at)


def release(batch_ids: Collection[str]) -> None:
    """Let any process go on now with batches that this process has taken."""
    now = clock.shared()
    Batch.objects.filter(pk__in=batch_ids, due_at__gt=now).update(due_at=now)


def release_all() -> None:
    """Make every batch that is not over due now. Call it at the start of the only process of an installation."""
    Batch.objects.filter(due_at__isnull=False).update(due_at=clock.shared())


def finish(batch_id: str) -> None:
    """Note that a batch is over: nothing is left to begin, to cancel or to write."""
    BatchItem.objects.filter(batch_id=batch_id, state="").update(state=TaskState.CANCELED.value)
    Batch.objects.filter(pk=batch_id).update(due_at=None)


def look(batch_id: str) -> Progress | None:
    """Note which items have ended, and return how far the batch has come; None for a batch whose task is gone."""
    head = Task.objects.filter(pk=batch_id).values_list("state", "context_id", "status").first()
    if head is None:
        return None
    rows = _open(batch_id).filter(task_id__isnull=False).values_list("task_id", "place")
    running = {task_id: place for task_id, place in rows if task_id}
    states = dict(Task.objects.filter(pk__in=running).values_list("pk", "state"))
    ends: dict[str, list[int]] = {}
    for task_id, place in running.items():
        # A task that was deleted has ended.
        state = states.get(task_id, TaskState.FAILED.value)
        if state in TERMINAL:
            ends.setdefault(state, []).append(place)
    for state, places in ends.items():
        _open(batch_id).filter(place__in=places).update(state=state)
    counts = BatchItem.objects.filter(batch_id=batch_id).aggregate(
        ended=Count("place", filter=~Q(state="")),
        completed=Count("place", filter=Q(state=TaskState.COMPLETED.value)),
    )
    return Progress(
        state=TaskState(head[0]),
        context_id=head[1],
        cursor=Batch.objects.values_list("cursor", flat=True).get(pk=batch_id),
        ended=counts["ended"],
        failed=counts["ended"] - counts["completed"],
        reported=_reported_in(head[2]),
        at_work=tuple(id for id, state in states.items() if state in RUNNABLE or state in ACTIVE),
        waiting=tuple(id for id, state in states.items() if state in INTERRUPTED),
    )


def _reported_in(status: str) -> int:
    """Return the number of ended items that a stored status of a batch reports; 0 if it is no report."""
    message = decode_status(orjson.loads(status)).message
    metadata = message.metadata if message else None
    return int(metadata["progress"]["ended"]) if metadata and "progress" in metadata else 0


def _open(batch_id: str) -> QuerySet[BatchItem]:
    return BatchItem.objects.filter(batch_id=batch_id, state="")


def next_items(batch_id: str, most: int) -> list[BatchItem]:
    """Return the next items that have not begun, in their order."""
    rows = _open(batch_id).filter(task_id__isnull=True).order_by("place")
    return list(rows[:most]) if most > 0 else []


def attach(batch_id: str, tasks: Mapping[int, str], errors: Mapping[int, str]) -> list[str]:
    """Store the tasks that items became, and the errors of items that became none.

    Return the tasks that came too late: meanwhile another process has ended the batch, and their items without a task.
    """
    late = []
    with transaction.atomic():
        for place, task_id in tasks.items():
            rows = BatchItem.objects.filter(batch_id=batch_id, place=place)
            if rows.exclude(state="").filter(task_id__isnull=True).exists():
                late.append(task_id)
            rows.filter(state="", task_id__isnull=True).update(task_id=task_id)
        for place, error in errors.items():
            _open(batch_id).filter(place=place, task_id__isnull=True).update(state=TaskState.FAILED.value, error=error)
    return late


def ended_after(batch_id: str, cursor: int, most: int) -> list[BatchItem]:
    """Return the items whose results come next: those from the cursor on, up to the first that has not ended."""
    rows = BatchItem.objects.filter(batch_id=batch_id, place__gte=cursor).order_by("place")[:most]
    items: list[BatchItem] = []
    for row in rows:
        if not row.state:
            break
        items.append(row)
    return items


def write(batch_id: str, item: Append, *, before: int, cursor: int, is_over: bool) -> Appended | None:
    """Append events to the task of a batch, and move the cursor over the results among them, in one transaction.

    Return None if the task has ended, or another process has moved the cursor: then nothing is written.
    """
    with transaction.atomic():
        rows = Batch.objects.filter(pk=batch_id, cursor=before, due_at__isnull=False)
        due_at = None if is_over else _lease(clock.shared())
        if not rows.update(cursor=cursor, due_at=due_at):
            return None
        (outcome,) = append_many([item])
        if isinstance(outcome, Appended):
            return outcome
        transaction.set_rollback(True)
        if outcome is None:
            return None
    raise LockRefused(f"the row of batch {batch_id} is locked")
