"""Snapshots: due when the tail is long, and without effect on any answer."""

from datetime import timedelta
from functools import reduce
from typing import Any

import pytest
from django.utils import timezone

from a2a.dialects.json.json_1_0 import document, task_of
from a2a.events import MessageAdded, StatusChanged, apply
from a2a.states import TaskState
from a2a.types import Message, Part, Role, Status
from tasks_app.database.bridge import bridge
from tasks_app.database.sql import on_postgres
from tasks_app.event_log import (
    Appended,
    ReadTask,
    Refresh,
    claim,
    create_many,
    read_many,
)
from tasks_app.event_log.snapshots import ROW_CHARACTERS
from tasks_app.ids import uuid7, uuid7_at
from tasks_app.models import Event, Exchange, ExchangeBody, IdempotencyKey, Task
from tests.conftest import Person
from tests.operations.rows import LONG_AGO, addition, append, chunk, create_tasks, creation, forget, status, wish

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]


def test_a_snapshot_is_due_when_the_tail_is_long_and_changes_no_answer(owner: Person) -> None:
    (task_id,) = create_tasks(owner)
    due = [append(task_id, chunk(f"{number} ", append=number > 0)).stale for number in range(66)]
    assert due == [False] * 64 + [True, True]
    before = read_many([ReadTask(task_id=task_id, sight=None)])
    assert (
        Refresh.do_many([Refresh(task_id=task_id), Refresh(task_id=task_id), Refresh(task_id="missing")]) == [None] * 3
    )
    row = Task.objects.get()
    assert (row.snapshot_seq, row.last_seq) == (67, 67)
    assert read_many([ReadTask(task_id=task_id, sight=None)]) == before
    assert append(task_id, chunk("more")) == Appended(68, False)


def test_a_large_task_at_work_has_no_snapshot_that_each_append_rewrites(owner: Person) -> None:
    (task_id,) = create_tasks(owner)
    part = "x" * (ROW_CHARACTERS // 60)
    due = [append(task_id, chunk(part, append=number > 0)).stale for number in range(70)]
    assert any(due) is on_postgres(), "where a change of a row leaves its large columns where they are"
    assert append(task_id, status(TaskState.COMPLETED)).stale


def test_a_snapshot_is_refreshed_behind_a_quiet_moment(owner: Person) -> None:
    (task_id,) = create_tasks(owner)
    assert bridge.do(addition(task_id, chunk("a"), status(TaskState.COMPLETED))).stale
    bridge.stop()  # ends the lanes when all is done
    row = Task.objects.get()
    assert row.snapshot_seq == row.last_seq == 3


@pytest.mark.parametrize("between", [False, True])
def test_a_snapshot_that_comes_with_an_append_is_stored_if_it_is_the_whole(owner: Person, between: bool) -> None:
    (task_id,) = create_tasks(owner)
    (read,) = claim(wish())
    if between:
        assert append(task_id, MessageAdded(message=Message(message_id="b", role=Role.USER, parts=(Part(text="B"),))))
    events = [chunk("all"), status(TaskState.COMPLETED)]
    whole = reduce(apply, events, task_of(read.document))
    known = document(whole, read.document.seq + 2, read.document.agent)
    result = append(task_id, *events, fence=1, snapshot=known)
    assert result == Appended(read.document.seq + 2 + between, stale=between)
    assert (Task.objects.get().snapshot_seq == result.seq) is not between
    (now,) = read_many([ReadTask(task_id=task_id, sight=None)])
    assert now
    assert (now.document == known) is not between


def test_rows_past_their_time_are_deleted_and_no_others(owner: Person, settings: Any) -> None:
    done, open_, kept = uuid7_at(LONG_AGO), uuid7_at(LONG_AGO + timedelta(seconds=1)), uuid7()
    create_many([creation(owner, f"k{place}", id=id) for place, id in enumerate((done, open_, kept))])
    for task_id in (done, kept):
        append(task_id, status(TaskState.COMPLETED))
    Task.objects.filter(pk=done).update(status_at=LONG_AGO)
    IdempotencyKey.objects.filter(key="k0").update(created_at=LONG_AGO)
    forget()
    assert set(Task.objects.values_list("id", flat=True)) == {kept, open_}
    assert not Event.objects.filter(task_id=done).exists()
    assert set(IdempotencyKey.objects.values_list("key", flat=True)) == {"k1", "k2"}


@pytest.mark.parametrize(("exchange_days", "task_days", "left"), [(7, 30, ["task"]), (30, 7, ["exchange", "body"])])
def test_exchanges_and_tasks_are_forgotten_each_in_their_time(
    owner: Person, settings: Any, exchange_days: int, task_days: int, left: list[str]
) -> None:
    settings.A2A_EXCHANGE_DAYS, settings.A2A_TASK_DAYS = exchange_days, task_days
    then = timezone.now() - timedelta(days=8)
    old = uuid7_at(then)
    create_many([creation(owner, "k", id=old)])
    append(old, StatusChanged(status=Status(state=TaskState.COMPLETED, timestamp=then)))
    for id in (old, uuid7()):
        made = Exchange.objects.create(id=id, rpc_id_type="absent", door="http", task_id=old, created_at=then)
        ExchangeBody.objects.create(exchange=made)
    forget()
    tables = {"task": Task, "exchange": Exchange, "body": ExchangeBody}
    assert [name for name, model in tables.items() if model.objects.filter(pk=old).exists()] == left
    assert (Exchange.objects.exclude(pk=old).count(), ExchangeBody.objects.exclude(pk=old).count()) == (1, 1)
