"""The money of tasks in the log: new tasks that reserve it, what runs report, and the settlement at the end."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Self

from django.db import OperationalError, transaction
from msgspec import Struct

from a2a.dialects.json.json_1_0 import dumps
from a2a.states import TaskState
from tasks_app.database.locks import LockRefused, is_lock_refusal
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import on_postgres
from tasks_app.database.work import LOCKED, GroupResult, Work
from tasks_app.event_log.changes import Appended
from tasks_app.limits.budgets import settle
from tasks_app.limits.lock_waits import lock_waits
from tasks_app.models import Task

log = logging.getLogger(__name__)
_TASK = Task._meta.db_table


def settle_ended(cursor: Any, outcomes: Mapping[str, object]) -> None:
    """Settle the reservations of the tasks that these outcomes have ended. Raises LockRefused with those tasks."""
    spent = {
        task_id: outcome.unsettled
        for task_id, outcome in outcomes.items()
        if isinstance(outcome, Appended) and outcome.unsettled is not None
    }
    if not spent:
        return
    try:
        with lock_waits.limited(cursor):
            settle(cursor, spent)
    except OperationalError as error:
        if is_lock_refusal(error):
            raise LockRefused("another transaction has locked a budget", spent) from error
        raise


class Spend(Work[bool], Struct, frozen=True, kw_only=True):
    """The sum of the reports of a task's runs, written without an event. The result is False for a run whose lease is
    gone."""

    lane = "write"
    repeatable = True

    task_id: str
    fence: int
    spent: int
    """The sum of all reports: written twice, it counts once."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[bool]]:
        return _spend_postgres(items) if on_postgres() else _spend_sqlite(items)

    def unique(self) -> str:
        return self.task_id


_SPEND_POSTGRES = f"""
with r as (select * from jsonb_to_recordset(%s::jsonb) as x(id text, fence bigint, spent bigint)),
    l as materialized (select id from {_TASK} where id = any(%s) order by id for no key update skip locked),
    u as (update {_TASK} t set spent = r.spent from r join l using (id)
        where t.id = r.id and t.attempt = r.fence and t.state = '{TaskState.WORKING}' returning t.id)
select r.id, u.id is not null, l.id is null and exists (select 1 from {_TASK} held where held.id = r.id)
from r left join u using (id) left join l using (id)
"""
_SPEND_SQLITE = f"update {_TASK} set spent = %s where id = %s and attempt = %s and state = '{TaskState.WORKING}'"


def _spend_postgres(items: Sequence[Spend]) -> list[GroupResult[bool]]:
    rows = dumps([{"id": item.task_id, "fence": item.fence, "spent": item.spent} for item in items])
    with prepared() as cursor:
        cursor.execute(_SPEND_POSTGRES, (rows, [item.task_id for item in items]))
        results = {id: LOCKED if is_locked else done for id, done, is_locked in cursor.fetchall()}
    return [results[item.task_id] for item in items]


def _spend_sqlite(items: Sequence[Spend]) -> list[GroupResult[bool]]:
    with transaction.atomic(), prepared() as cursor:
        return [_spend_one(cursor, item) for item in items]


def _spend_one(cursor: Any, item: Spend) -> bool:
    cursor.execute(_SPEND_SQLITE, (item.spent, item.task_id, item.fence))
    return bool(cursor.rowcount)
