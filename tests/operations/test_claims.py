"""Claims, leases and what becomes of lost tasks."""

from contextlib import suppress
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError
from django.utils import timezone

from a2a.dialects.json.json_1_0 import task_of
from a2a.events import MessageAdded
from a2a.states import TaskState
from a2a.types import Message, Part, Role, Status
from tasks_app.database.bridge import bridge
from tasks_app.database.locks import LockRefused
from tasks_app.event_log import (
    Claim,
    Demand,
    ReadTask,
    Renew,
    claim,
    create_many,
    read_many,
    recover,
    release_all,
    renew,
)
from tasks_app.models import Event, Run, Task
from tasks_app.upkeep import leases
from tasks_app.upkeep.leases import reclaim_tasks
from tests.conftest import Person
from tests.operations.rows import LONG_AGO, append, chunk, create_tasks, creation, damaged, expire, status, wish

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]
claim_module: Any = import_module("tasks_app.event_log.claim")


@pytest.mark.requirement("ACP-21")
def test_claims_go_by_priority_then_age_and_never_overlap(owner: Person) -> None:
    ids = create_tasks(owner, 4)
    Task.objects.filter(pk=ids[2]).update(priority=5)
    Task.objects.filter(pk=ids[3]).update(created_at=LONG_AGO)
    claimed = [read.document.id for _ in range(3) for read in claim(wish(2))]
    assert sorted(claimed[:2]) == sorted([ids[2], ids[3]])
    assert sorted(claimed) == sorted(ids)
    assert set(Task.objects.values_list("state", "lease_owner", "fence", "attempt")) == {("working", "w", 1, 1)}


def test_one_claim_takes_each_kind_up_to_its_own_slots(owner: Person) -> None:
    items = [creation(owner, f"k{place}", agent="one" if place % 2 else "other") for place in range(6)]
    assert create_many(items) == [None] * 6
    demands = tuple(
        Demand(agents=(agent,), queues=("default",), limit=limit) for agent, limit in (("one", 1), ("other", 2))
    )
    claimed = claim(Claim(worker="w", demands=demands))
    assert sorted(read.agent for read in claimed) == ["one", "other", "other"]
    for read in claimed:
        (again,) = read_many([ReadTask(task_id=read.document.id, sight=None)])
        assert again == read


def test_a_claimed_task_is_whole_whatever_was_said_in_it_before(owner: Person) -> None:
    (task_id,) = create_tasks(owner)
    claim(wish())
    said = status(TaskState.INPUT_REQUIRED, "Your name?")
    assert append(task_id, chunk("begun"), said, fence=1)
    answer = Message(message_id="m2", role=Role.USER, parts=(Part(text="Ada"),))
    assert append(task_id, MessageAdded(message=answer, status=Status(state=TaskState.SUBMITTED, timestamp=LONG_AGO)))
    (read,) = claim(wish())
    (again,) = read_many([ReadTask(task_id=task_id, sight=None)])
    assert again == read
    assert [message.parts[0].text for message in task_of(read.document).history] == ["Your name?", "Ada"]


def test_a_claim_is_given_out_although_its_connection_is_cut_before_the_read(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task_id,) = create_tasks(owner)
    assert append(task_id, status(TaskState.INPUT_REQUIRED, "Your name?"))
    assert append(task_id, status(TaskState.SUBMITTED))
    failures = [OperationalError("the connection is lost")]

    def cut(items: Any) -> Any:
        if failures:
            raise failures.pop()
        return read_many(items)

    monkeypatch.setattr(claim_module, "read_many", cut)
    assert [(read.document.id, read.fence) for read in bridge.do(wish())] == [(task_id, 1)]


def test_a_task_that_was_claimed_before_a_lock_was_refused_is_recovered(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration may ask for the lock of a whole table between two statements of a claim."""
    (task_id,) = create_tasks(owner)
    claim(wish())
    assert append(task_id, status(TaskState.SUBMITTED, "Again."), fence=1)

    def refuse(items: Any) -> Any:
        raise LockRefused("the table is locked")

    with monkeypatch.context() as patch:
        patch.setattr(claim_module, "read_many", refuse)
        with pytest.raises(OperationalError):
            bridge.do(wish())
    assert [(read.document.id, read.fence) for read in recover("w", set())] == [(task_id, 2)]


def test_only_ones_own_agents_are_claimed(owner: Person) -> None:
    create_tasks(owner)
    assert claim(wish(agents=("echo",))) == claim(wish(agents=())) == claim(wish(0)) == []
    assert len(claim(wish())) == 1


def test_a_lease_is_renewed_for_its_holder_only(owner: Person) -> None:
    create_tasks(owner)
    (read,) = claim(wish())
    task_id = read.document.id
    assert renew(Renew(worker="w", pairs=((task_id, 1), ("gone", 1)))) == {task_id}
    assert renew(Renew(worker="other", pairs=((task_id, 1),))) == set()
    assert renew(Renew(worker="w", pairs=((task_id, 2),))) == set()
    expire(read)
    assert renew(Renew(worker="w", pairs=((task_id, 1),))) == {task_id}
    assert reclaim_tasks() == 0


def test_the_sweeper_leaves_a_valid_lease_alone(owner: Person) -> None:
    create_tasks(owner)
    claim(wish())
    assert reclaim_tasks() == 0
    assert Task.objects.get().state == "working"


def test_a_lost_task_is_tried_again_and_then_failed_with_a_reason(owner: Person) -> None:
    create_tasks(owner)
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
    create_tasks(owner, 5)
    for read in claim(wish()):
        expire(read)
    assert reclaim_tasks() == 5
    assert not Task.objects.filter(state="working").exists()


def test_a_run_far_past_its_deadline_is_failed_even_with_a_valid_lease(owner: Person) -> None:
    create_tasks(owner, 2)
    late, later = claim(wish())
    Task.objects.filter(pk=late.document.id).update(deadline=timezone.now() - timedelta(seconds=1))
    Task.objects.filter(pk=later.document.id).update(deadline=timezone.now() - timedelta(seconds=10))
    assert reclaim_tasks() == 1
    assert Task.objects.get(pk=late.document.id).state == "working"
    row = Task.objects.get(pk=later.document.id)
    assert row.state == "failed"
    assert "longer than its timeout of 60 s" in row.status


def test_a_run_that_was_lost_before_its_deadline_is_lost_whenever_that_is_found(owner: Person) -> None:
    create_tasks(owner)
    claim(wish())
    died = timezone.now() - timedelta(hours=10)
    Task.objects.update(lease_until=died, deadline=died + timedelta(seconds=30))
    assert reclaim_tasks() == 1
    assert Task.objects.get().state == "submitted"
    assert Run.objects.get().outcome == "lost"


def test_the_start_of_the_only_process_ends_every_lease(owner: Person) -> None:
    create_tasks(owner, 2)
    claim(wish(1))
    assert release_all() == 1
    assert reclaim_tasks() == 1
    assert set(Task.objects.values_list("state", flat=True)) == {"submitted"}


@pytest.mark.parametrize("pushes", [False, True])
def test_a_damaged_task_keeps_no_other_from_being_claimed(owner: Person, pushes: bool) -> None:
    first, second = create_tasks(owner, 2)
    Task.objects.update(pushes=pushes)
    with damaged(first):
        with suppress(IntegrityError):
            claim(wish())
        assert [read.document.id for read in claim(wish())] == [second]
    assert Task.objects.get(pk=first).state == "submitted"


def test_a_task_whose_log_cannot_be_read_loses_no_other_of_its_claim(owner: Person) -> None:
    ids = create_tasks(owner, 2)
    for task_id in ids:
        append(task_id, chunk("hello"))
    event = Event.objects.filter(task_id=ids[0]).latest("seq")
    rows, whole = Event.objects.filter(pk=event.pk), event.payload
    rows.update(payload=whole[:-1])
    assert [read.document.id for read in claim(wish())] == ids[1:]
    assert [read.document.id for read in recover("w", set())] == ids[1:]
    rows.update(payload=whole)
