"""The log: its conditions, its fence, its numbers, its snapshots, and what becomes of lost leases."""

from datetime import timedelta
from functools import reduce
from importlib import import_module
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError
from django.utils import timezone
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import document, task_of
from a2a.events import MessageAdded, StatusChanged, apply
from a2a.states import TaskState
from a2a.types import Message, Part, Role, Status
from tasks_app.callers import access
from tasks_app.database.bridge import bridge
from tasks_app.database.groups import do_group
from tasks_app.database.rows import KeyRow
from tasks_app.event_log import (
    Append,
    Appended,
    Claim,
    Create,
    KeyTarget,
    ReadTask,
    Refresh,
    Renew,
    Want,
    append_many,
    claim,
    create_many,
    read_many,
    release_all,
    renew,
)
from tasks_app.event_log.snapshots import ROW_CHARACTERS
from tasks_app.ids import uuid7, uuid7_at
from tasks_app.models import Event, Exchange, ExchangeBody, IdempotencyKey, Run, Task
from tasks_app.upkeep import leases
from tasks_app.upkeep.leases import reclaim_tasks
from tests.conftest import Person, on_postgres
from tests.operations.asking import message, text_of
from tests.operations.rows import LONG_AGO, addition, chunk, creation, expire, forget, status, wish

claim_module: Any = import_module("tasks_app.event_log.claim")
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]


def made(owner: Person, number: int = 1) -> list[str]:
    items = [creation(owner, f"k{place}") for place in range(number)]
    assert create_many(items) == [None] * number
    return [item.task.id for item in items if item.task]


def append(task_id: str, *events: Any, **more: Any) -> Any:
    return append_many([addition(task_id, *events, **more)])[0]


# ------------------------------------------------------------------ groups


def test_a_group_of_creations_is_stored_whole(owner: Person) -> None:
    made(owner, 70)
    assert (Task.objects.count(), Event.objects.count(), IdempotencyKey.objects.count()) == (70, 70, 70)


def test_a_key_that_is_known_answers_with_what_it_stands_for(owner: Person, stranger: Person) -> None:
    (first,) = made(owner)
    results = create_many([creation(owner, "new"), creation(owner, "k0"), creation(stranger, "k0")])
    assert results == [None, KeyTarget(fingerprint="f", task_id=first, reply_id=None), None]
    assert Task.objects.count() == 3


def test_a_group_that_is_stored_twice_for_a_doubtful_commit_finds_itself(owner: Person) -> None:
    item = creation(owner, "once")
    assert create_many([item]) == create_many([item]) == [None]
    assert Task.objects.count() == 1


def key_of(owner: Person, task_id: str) -> KeyRow:
    owner_id = owner.caller.owner_id
    return KeyRow(
        owner_id=owner_id, key="again", fingerprint="f", task_id=task_id, turn_id=None, created_at=timezone.now()
    )


def bad(owner: Person, known: str) -> list[tuple[str, Create]]:
    """Items that the database refuses."""
    items = [("taken", creation(owner, "bad", id=known))]
    return [*items, ("nul", creation(owner, "bad", context="a\0b"))] if on_postgres() else items


def test_one_bad_item_of_a_group_fails_alone(owner: Person) -> None:
    (known,) = made(owner)
    for name, item in bad(owner, known):
        group = [creation(owner, f"{name}{place}") for place in range(12)]
        results = do_group(Create, [*group[:7], item, *group[7:]])
        assert isinstance(results[7], Exception)
        assert [result for place, result in enumerate(results) if place != 7] == [None] * 12
        assert not IdempotencyKey.objects.filter(key="bad").exists()
    assert Task.objects.count() == 1 + 12 * len(bad(owner, known))


def test_a_group_of_appends_gives_each_its_number(owner: Person) -> None:
    ids = made(owner, 5)
    results = append_many([addition(task_id, chunk("a"), chunk("b")) for task_id in ids[:4]])
    assert results == [Appended(3, False)] * 4
    assert dict(Task.objects.values_list("id", "last_seq")) == dict(zip(ids, [3, 3, 3, 3, 1], strict=True))


def test_a_copy_of_a_change_counts_its_events_once(owner: Person) -> None:
    (task_id,) = made(owner)
    item = addition(task_id, MessageAdded(message=message("hello")), chunk("a"))
    copy = replace(item, after=1)
    assert (copy.size, copy.messages, copy.last_message) == (item.size, 1, 1)
    assert item.size == sum(len(event.payload) for event in item.events)


def test_an_append_whose_key_is_known_is_refused_whole(owner: Person) -> None:
    """Two calls with one follow-up message both find its key unknown, and both append: the second must fail."""
    (task_id,) = made(owner)
    outcomes = [do_group(Append, [addition(task_id, chunk("a"), key=key_of(owner, task_id))]) for _ in range(2)]
    assert outcomes[0] == [Appended(2, False)]
    assert isinstance(outcomes[1][0], IntegrityError)
    assert Task.objects.get().last_seq == 2


def test_a_group_of_reads_is_told_apart_by_who_asks(owner: Person, stranger: Person) -> None:
    one, two = made(owner, 2)
    asks = [
        ReadTask(task_id=one, sight=access.sight(owner.caller, one)),
        ReadTask(task_id=one, sight=access.sight(stranger.caller, one)),
        ReadTask(task_id=one, sight=None),
        ReadTask(task_id=two, sight=access.sight(stranger.caller, two)),
        ReadTask(task_id="missing", sight=None),
    ]
    assert [read.document.id if read else None for read in read_many(asks)] == [one, None, one, None, None]


# -------------------------------------------------------------- conditions


def test_a_history_that_is_not_wanted_is_not_read(owner: Person) -> None:
    one, other = made(owner, 2)
    for task_id in (one, other):
        append(task_id, chunk("a", append=False), chunk("b"))
    (before,) = read_many([ReadTask(task_id=one, sight=None, history=False)])
    Task.objects.filter(pk=one).update(history="no JSON")
    with pytest.raises(ValueError, match="literal"):
        read_many([ReadTask(task_id=one, sight=None)])
    brief, whole = ReadTask(task_id=one, sight=None, history=False), ReadTask(task_id=other, sight=None)
    assert [before.document.history, text_of(task_of(before.document))] == [None, "ab"]
    assert [read.document.history for read in read_many([brief, whole])] == [None, "[]"]
    assert read_many([brief]) == [before]
    Task.objects.filter(pk=one).update(history="[]")


def test_who_wants_a_history_gets_it_beside_others_who_do_not(owner: Person) -> None:
    (task_id,) = made(owner)
    append(task_id, MessageAdded(message=Message(message_id="m", role=Role.USER, parts=(Part(text="psst"),))))
    wishes = [ReadTask(task_id=task_id, sight=None, history=wanted) for wanted in (False, True)]
    assert ["psst" in read.document.history for read in read_many(wishes)] == [True, True]
    assert [read.document.history for read in read_many(wishes[:1])] == [None]


def test_nobody_appends_to_what_they_cannot_see(owner: Person, stranger: Person) -> None:
    (task_id,) = made(owner)
    assert append(task_id, status(TaskState.CANCELED), sight=access.sight(stranger.caller, task_id)) is None
    assert append(task_id, status(TaskState.CANCELED), sight=access.sight(owner.caller, task_id))


@pytest.mark.parametrize("end", ["completed", "failed", "canceled", "rejected"])
def test_what_has_ended_takes_no_event(owner: Person, end: str) -> None:
    (task_id,) = made(owner)
    assert append(task_id, status(TaskState(end)))
    for event in (status(TaskState.WORKING), status(TaskState(end)), chunk("late")):
        assert append(task_id, event) is None
    assert Task.objects.get().last_seq == 2


def test_the_fence_refuses_an_old_attempt(owner: Person) -> None:
    made(owner)
    (first,) = claim(wish())
    task_id = first.document.id
    assert append(task_id, chunk("one"), fence=1)
    expire(first)
    assert reclaim_tasks() == 1
    assert append(task_id, chunk("between"), fence=1) is None
    (second,) = claim(wish())
    assert (second.fence, second.attempt) == (2, 2)
    assert append(task_id, chunk("late"), fence=1) is None
    assert append(task_id, status(TaskState.COMPLETED), fence=1) is None
    assert append(task_id, chunk("two", append=False), fence=2)
    (read,) = read_many([ReadTask(task_id=task_id, sight=None)])
    assert read
    assert text_of(task_of(read.document)) == "two"


def test_an_ending_frees_the_lease(owner: Person) -> None:
    made(owner)
    (read,) = claim(wish())
    assert append(read.document.id, status(TaskState.COMPLETED), fence=1)
    row = Task.objects.get()
    assert (row.lease_owner, row.lease_until, row.deadline) == (None, None, None)


# ---------------------------------------------------------- claims, leases


def test_claims_go_by_priority_then_age_and_never_overlap(owner: Person) -> None:
    ids = made(owner, 4)
    Task.objects.filter(pk=ids[2]).update(priority=5)
    Task.objects.filter(pk=ids[3]).update(created_at=LONG_AGO)
    claimed = [read.document.id for _ in range(3) for read in claim(wish(2))]
    assert sorted(claimed[:2]) == sorted([ids[2], ids[3]])
    assert sorted(claimed) == sorted(ids)
    assert set(Task.objects.values_list("state", "lease_owner", "fence", "attempt")) == {("working", "w", 1, 1)}


def test_one_claim_takes_each_kind_up_to_its_own_slots(owner: Person) -> None:
    items = [creation(owner, f"k{place}", agent="one" if place % 2 else "other") for place in range(6)]
    assert create_many(items) == [None] * 6
    wants = tuple(
        Want(agents=(agent,), queues=("default",), limit=limit) for agent, limit in (("one", 1), ("other", 2))
    )
    claimed = claim(Claim(worker="w", wants=wants))
    assert sorted(read.agent for read in claimed) == ["one", "other", "other"]
    for read in claimed:
        (again,) = read_many([ReadTask(task_id=read.document.id, sight=None)])
        assert again == read


def test_a_claimed_task_is_whole_whatever_was_said_in_it_before(owner: Person) -> None:
    (task_id,) = made(owner)
    claim(wish())
    said = status(TaskState.INPUT_REQUIRED, "Your name?")
    assert append(task_id, chunk("begun"), said, fence=1)
    answer = Message(message_id="m2", role=Role.USER, parts=(Part(text="Ada"),))
    assert append(task_id, MessageAdded(message=answer, status=Status(state=TaskState.SUBMITTED, timestamp=LONG_AGO)))
    (read,) = claim(wish())
    (again,) = read_many([ReadTask(task_id=task_id, sight=None)])
    assert again == read
    assert [message.parts[0].text for message in task_of(read.document).history] == ["Your name?", "Ada"]


def test_what_was_claimed_is_given_out_although_its_connection_is_cut_before_it_is_read(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task_id,) = made(owner)
    assert append(task_id, status(TaskState.INPUT_REQUIRED, "Your name?"))
    assert append(task_id, status(TaskState.SUBMITTED))
    failures = [OperationalError("the connection is lost")]

    def cut(items: Any) -> Any:
        if failures:
            raise failures.pop()
        return read_many(items)

    monkeypatch.setattr(claim_module, "read_many", cut)
    assert [(read.document.id, read.fence) for read in bridge.do(wish())] == [(task_id, 1)]


def test_only_ones_own_agents_are_claimed(owner: Person) -> None:
    made(owner)
    assert claim(wish(agents=("echo",))) == claim(wish(agents=())) == claim(wish(0)) == []
    assert len(claim(wish())) == 1


def test_a_lease_is_renewed_for_its_holder_only(owner: Person) -> None:
    made(owner)
    (read,) = claim(wish())
    task_id = read.document.id
    assert renew(Renew(worker="w", held=((task_id, 1), ("gone", 1)))) == {task_id}
    assert renew(Renew(worker="other", held=((task_id, 1),))) == set()
    assert renew(Renew(worker="w", held=((task_id, 2),))) == set()
    expire(read)
    assert renew(Renew(worker="w", held=((task_id, 1),))) == {task_id}
    assert reclaim_tasks() == 0


def test_the_sweeper_leaves_a_valid_lease_alone(owner: Person) -> None:
    made(owner)
    claim(wish())
    assert reclaim_tasks() == 0
    assert Task.objects.get().state == "working"


def test_a_lost_task_is_tried_again_and_then_failed_with_a_reason(owner: Person) -> None:
    made(owner)
    for number in (1, 2):
        (read,) = claim(wish(worker=f"w{number}"))
        expire(read)
        assert reclaim_tasks() == 1
        assert reclaim_tasks() == 0
    row = Task.objects.get()
    assert row.state == "failed"
    assert "in the last of its 2 attempts" in row.status
    assert list(Run.objects.order_by("fence").values_list("fence", "worker", "outcome")) == [
        (1, "w1", "lost"),
        (2, "w2", "lost"),
    ]
    assert all(run.started_at and run.started_at <= run.ended_at for run in Run.objects.all())
    assert set(Event.objects.filter(actor="sweeper").values_list("state", flat=True)) == {"submitted", "failed"}


def test_more_lost_tasks_than_a_batch_are_taken_up_at_once(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BATCH", 2)
    made(owner, 5)
    for read in claim(wish()):
        expire(read)
    assert reclaim_tasks() == 5
    assert not Task.objects.filter(state="working").exists()


def test_a_run_far_past_its_deadline_is_failed_even_with_a_valid_lease(owner: Person) -> None:
    made(owner, 2)
    late, later = claim(wish())
    Task.objects.filter(pk=late.document.id).update(deadline=timezone.now() - timedelta(seconds=1))
    Task.objects.filter(pk=later.document.id).update(deadline=timezone.now() - timedelta(seconds=10))
    assert reclaim_tasks() == 1
    assert Task.objects.get(pk=late.document.id).state == "working"
    row = Task.objects.get(pk=later.document.id)
    assert row.state == "failed"
    assert "longer than its timeout of 60 s" in row.status


def test_the_start_of_the_only_process_ends_every_lease(owner: Person) -> None:
    made(owner, 2)
    claim(wish(1))
    assert release_all() == 1
    assert reclaim_tasks() == 1
    assert set(Task.objects.values_list("state", flat=True)) == {"submitted"}


# --------------------------------------------------------------- snapshots


def test_a_snapshot_is_due_when_the_tail_is_long_and_changes_no_answer(owner: Person) -> None:
    (task_id,) = made(owner)
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


def test_a_large_task_that_works_has_no_snapshot_that_each_append_would_write_anew(owner: Person) -> None:
    (task_id,) = made(owner)
    part = "x" * (ROW_CHARACTERS // 60)
    due = [append(task_id, chunk(part, append=number > 0)).stale for number in range(70)]
    assert any(due) is on_postgres(), "where a change of a row leaves its large columns where they are"
    assert append(task_id, status(TaskState.COMPLETED)).stale


def test_a_snapshot_is_refreshed_behind_a_quiet_moment(owner: Person) -> None:
    (task_id,) = made(owner)
    assert bridge.do(addition(task_id, chunk("a"), status(TaskState.COMPLETED))).stale
    bridge.stop()  # ends the lanes when all is done
    row = Task.objects.get()
    assert row.snapshot_seq == row.last_seq == 3


@pytest.mark.parametrize("between", [False, True])
def test_a_snapshot_that_comes_with_an_append_is_stored_if_it_is_the_whole(owner: Person, between: bool) -> None:
    (task_id,) = made(owner)
    (read,) = claim(wish())
    if between:
        assert append(task_id, MessageAdded(message=Message(message_id="b", role=Role.USER, parts=(Part(text="B"),))))
    events = [chunk("all"), status(TaskState.COMPLETED)]
    known = document(reduce(apply, events, task_of(read.document)), read.document.seq + 2)
    result = append(task_id, *events, fence=1, snapshot=known)
    assert result == Appended(read.document.seq + 2 + between, stale=between)
    assert (Task.objects.get().snapshot_seq == result.seq) is not between
    (now,) = read_many([ReadTask(task_id=task_id, sight=None)])
    assert now
    assert (now.document == known) is not between


def test_what_is_past_its_time_is_forgotten_and_nothing_else(owner: Person, settings: Any) -> None:
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
