"""The answers that agents owe to the messages of shared streams, as rows: whose turn it is, and how far each has come.

A process goes on with an answer until `due_at`, and puts that time off while it does. The process that comes after a
dead one finds the cursor: chunks and the cursor are written in one transaction, so each event becomes a chunk once.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from msgspec import Struct

from a2a.dialects.json.json_1_0 import decode_part
from a2a.shared_streams import SharedStreamState
from a2a.types import Part
from tasks_app import clock
from tasks_app.callers.access import Caller
from tasks_app.callers.rules import rules_of
from tasks_app.models import AgentAnswer, Chunk
from tasks_app.shared_streams.log import Entry, Place, check, lock, write
from tasks_app.shared_streams.waiting import is_behind, wait, wake_next

OF_ONE = 20
"""Answers that one process follows for one author at the same time."""


class Turn(Struct, frozen=True, kw_only=True):
    """An answer that is due: the agent, the message, and the caller in whose name the agent is called."""

    id: int
    stream_id: str
    seq: int
    agent: str
    caller: Caller
    parts: tuple[Part, ...]
    task_id: str | None
    cursor: int


def take_turns(most: int, busy: Mapping[int, int] | None = None) -> list[Turn]:
    """Take answers that are due, for as long as a lease lasts. An agent answers the messages of a stream in order.

    `busy` has the number of answers that this process follows already for each author. No author has more than
    OF_ONE. A row that another transaction has locked is left for later.
    """
    with transaction.atomic():
        rows = _take_rows(most, busy or {})
    # After the commit: a damaged row must not undo the take, or each round would meet it again.
    return [_turn(row) for row in rows]


def _take_rows(most: int, busy: Mapping[int, int]) -> list[AgentAnswer]:
    now, own, counts = clock.shared(), list[AgentAnswer](), Counter(busy)
    while len(own) < most:
        full = [author for author, count in counts.items() if count >= OF_ONE]
        room = most - len(own)
        rows = list(_due(now).exclude(principal_id__in=full).select_related("principal__tenant")[:room])
        for row in rows:
            if counts[row.principal_id] < OF_ONE and _take(row, now):
                counts[row.principal_id] += 1
                own.append(row)
        if len(rows) < room:
            break
    return own


def _due(now: datetime) -> QuerySet[AgentAnswer]:
    """Lock the answers that may be taken, in the order in which they became due."""
    # Rows behind an earlier one wait, so that they are not read here. Those of the version before do not.
    rows = AgentAnswer.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
    rows = rows.filter(~is_behind(), due_at__lte=now, waits_since__isnull=True)
    return rows.order_by("due_at", "pk")


def _take(row: AgentAnswer, now: datetime) -> bool:
    """Take an answer, and return whether it was still there to be taken."""
    return bool(AgentAnswer.objects.filter(pk=row.pk, due_at=row.due_at).update(due_at=_lease(now)))


def _lease(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.A2A_LEASE_SECONDS)


def _turn(row: AgentAnswer) -> Turn:
    principal = row.principal
    parts = Chunk.objects.values_list("parts", flat=True).get(stream_id=row.stream_id, seq=row.seq)
    return Turn(
        id=row.pk,
        stream_id=row.stream_id,
        seq=row.seq,
        agent=row.agent,
        caller=Caller(
            tenant_id=principal.tenant_id,
            tenant=principal.tenant.name,
            owner_id=principal.pk,
            name=principal.name,
            scopes=frozenset(row.scopes.split()),
            rules=rules_of(principal),
            agents=frozenset({row.agent}) if row.is_limited else None,
        ),
        parts=tuple(decode_part(part) for part in orjson.loads(parts)),
        task_id=row.task_id,
        cursor=row.cursor,
    )


def earlier_answer(turn: Turn) -> tuple[str, int] | None:
    """Return the task of the agent's answer before this one to the same caller, and its cursor."""
    rows = AgentAnswer.objects.filter(
        stream_id=turn.stream_id, agent=turn.agent, principal_id=turn.caller.owner_id, seq__lt=turn.seq
    )
    row = rows.filter(task_id__isnull=False).order_by("-seq").first()
    return (row.task_id, row.cursor) if row and row.task_id else None


def attach(turn: Turn, task_id: str, cursor: int) -> None:
    """Store the task of an answer. Its events after the cursor become chunks."""
    AgentAnswer.objects.filter(pk=turn.id, task_id__isnull=True).update(task_id=task_id, cursor=cursor)


def put_off(turn_id: int, seconds: float) -> bool:
    """Keep an answer from other processes for that time. Return False if it is over."""
    due_at = clock.shared() + timedelta(seconds=seconds)
    return bool(AgentAnswer.objects.filter(pk=turn_id, due_at__isnull=False).update(due_at=due_at))


def release(turn_ids: Sequence[int]) -> None:
    """Let any process go on now with answers that this process has taken."""
    now = clock.shared()
    AgentAnswer.objects.filter(pk__in=turn_ids, due_at__gt=now, waits_since__isnull=True).update(due_at=now)


def release_all() -> None:
    """Make every answer that was followed due now. Call it at the start of the only process of an installation."""
    AgentAnswer.objects.filter(due_at__isnull=False, waits_since__isnull=True).update(due_at=clock.shared())


def transfer(turn: Turn, entries: Sequence[Entry], *, before: int, cursor: int, is_over: bool) -> Place | None:
    """Append the chunks that were made of the events up to the cursor, and move the cursor, in one transaction.

    Return None if another process has moved it, or the answer is over. It is None too while the stream is paused: then
    nothing is written, and the answer waits. Raises InvalidParams if the stream is full.
    """
    with transaction.atomic():
        head = lock(turn.stream_id)
        if entries and head.state == SharedStreamState.PAUSED:
            wait(turn.id, before)
            return None
        rows = AgentAnswer.objects.filter(pk=turn.id, cursor=before, due_at__isnull=False)
        if not rows.update(cursor=cursor, due_at=None if is_over else _lease(clock.shared()), waits_since=None):
            return None
        entries = _without_vain_ends(turn, entries)
        if is_over:
            wake_next(turn.stream_id, turn.agent, turn.seq)
        if not entries:
            return Place(head.pk, head.last_seq, SharedStreamState(head.state), is_repeat=True)
        check(head, entries)
        return write(head, entries)


def _without_vain_ends(turn: Turn, entries: Sequence[Entry]) -> list[Entry]:
    """Return the chunks apart from those that end an attempt without any chunk."""
    task_id = next((entry.task_id for entry in entries if entry.ends_attempt), None)
    if task_id is None:
        return list(entries)
    # The turn itself has no task if this process has called the agent.
    own = Chunk.objects.filter(stream_id=turn.stream_id, author=turn.agent, task_id=task_id, seq__gt=turn.seq)
    chunks, is_open = list[Entry](), own.order_by("-seq").values_list("is_last", flat=True).first() is False
    for entry in entries:
        if is_open or not entry.ends_attempt:
            chunks.append(entry)
            is_open = not entry.is_last
    return chunks
