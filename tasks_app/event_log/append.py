"""Appends to the logs of tasks, in groups: all events but those of the creation and of claims.

One item is one conditional update of a task's row. Its conditions are that the caller may see the task, that the fence
is right, and that the events may follow the task's state. The update gives the next sequence numbers. The events, the
run and the exchange are inserted with it or not at all.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Self, TypedDict, Unpack

from a2a.dialects.json.json_1_0 import dumps, encode_status, event_document
from a2a.documents import TaskDocument
from a2a.events import Event
from a2a.states import QUIET, TaskState
from tasks_app.database.bridge import bridge
from tasks_app.database.locks import LockRefused
from tasks_app.database.rows import AuditRow, BodyRow, ExchangeRow, FileRow, KeyRow, PositionRow, RunRow, WebhookRow
from tasks_app.database.sql import on_postgres
from tasks_app.database.work import LOCKED, GroupResult, Work
from tasks_app.event_log import append_postgres, append_sqlite
from tasks_app.event_log.changes import Appended, Change, NewerMessage, Outcome, event_row, last_status, sources
from tasks_app.event_log.exchanges import drop_exchange
from tasks_app.event_log.news import notify
from tasks_app.event_log.snapshots import Refresh
from tasks_app.event_log.tallies import count_ends
from tasks_app.hints import Reached, hints
from tasks_app.limits.quotas import quota


class Options(TypedDict, total=False):
    """The fields of a change that `change` does not compute."""

    sight: str | None
    owner_id: int | None
    attempts: int
    delay: float | None
    after: int | None
    newest_message: int | None
    wants: str | None
    lease_before: datetime | None
    key: KeyRow | None
    files: list[FileRow]
    position: PositionRow | None
    run: RunRow | None
    exchange: ExchangeRow | None
    body: BodyRow | None
    entry: AuditRow | None
    snapshot: TaskDocument | None
    most_size: int | None
    most_messages: int | None
    webhook: WebhookRow | None
    with_deliveries: bool
    spent: int | None
    settles: bool


class Append(Work[Appended | NewerMessage | None], Change, kw_only=True):
    """A change as a work item."""

    lane = "write"

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[Outcome]:
        return append_many(items)

    @classmethod
    def after_commit(
        cls, items: Sequence[Self], results: Sequence[GroupResult[Appended | NewerMessage | None]]
    ) -> None:
        """Count ended tasks and stored bytes, notify readers and dispatchers, and have stale snapshots refreshed."""
        pairs = [(item, result) for item, result in zip(items, results, strict=True) if isinstance(result, Appended)]
        count_ends(item.state for item, _ in pairs)
        notify([Reached(item.task_id, result.seq, item.state, item.messages > 0) for item, result in pairs])
        for item, result in pairs:
            if item.owner_id is not None:
                quota.add(item.owner_id, item.size + sum(file.size for file in item.files))
            if item.delay is not None:
                hints.offer_in(item.delay)
            if result.stale:
                bridge.put(Refresh(task_id=item.task_id))

    def unique(self) -> str:
        return self.task_id

    def lighten(self) -> bool:
        """Drop the exchange: a refused record must not undo the change. The recorder stores the record again."""
        return drop_exchange(self)


def change(
    task_id: str,
    context_id: str,
    events: Sequence[Event],
    *,
    now: datetime,
    actor: str,
    fence: int | None = None,
    **more: Unpack[Options],
) -> Append:
    """Return an item that adds these events. Further arguments are fields of a change."""
    status = last_status(events)
    return Append(
        task_id=task_id,
        events=[
            event_row(
                event_document(event, task_id=task_id, context_id=context_id, seq=place),
                now=now,
                actor=actor,
                fence=fence or 0,
            )
            for place, event in enumerate(events, 1)
        ],
        fence=fence,
        # A run that lost its lease must not write between the loss and the next claim.
        sources=sources(events) if fence is None else [TaskState.WORKING.value],
        state=status.state.value if status else None,
        status=dumps(encode_status(status)) if status else None,
        status_at=status.timestamp if status else None,
        ends_lease=status is not None and (status.state in QUIET or status.state is TaskState.SUBMITTED),
        **more,
    )


def append_many(items: Sequence[Append]) -> list[Outcome]:
    """Append each item whose conditions hold. The outcome is None where they do not, and LOCKED where another
    transaction has locked a row that the item needs. No task may be twice in a group.

    On PostgreSQL a group is one statement, and a transaction only if it has deliveries to write or reservations to
    settle.
    """
    if not on_postgres():
        return append_sqlite.append_group(items)
    if not any(item.with_deliveries or item.settles for item in items):
        return append_postgres.append_group(items)
    locked: frozenset[str] = frozenset()
    while True:
        free = [item for item in items if item.task_id not in locked]
        try:
            results = iter(append_postgres.append_in_transaction(free) if free else ())
        except LockRefused as error:
            locked |= error.tasks
        else:
            return [LOCKED if item.task_id in locked else next(results) for item in items]
