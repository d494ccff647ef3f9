"""The event log: groups of creations, appends and reads, and the conditions on them."""

import pytest
from django.db import IntegrityError
from django.utils import timezone
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import task_of
from a2a.events import MessageAdded
from a2a.states import TaskState
from a2a.types import Message, Part, Role
from tasks_app.callers import access
from tasks_app.database.groups import do_group
from tasks_app.database.rows import KeyRow
from tasks_app.database.sql import on_postgres
from tasks_app.event_log import (
    Append,
    Appended,
    Create,
    KeyTarget,
    ReadTask,
    append_many,
    claim,
    create_many,
    read_many,
)
from tasks_app.models import Event, IdempotencyKey, Task
from tasks_app.upkeep.leases import reclaim_tasks
from tests.conftest import Person
from tests.operations.asking import message, text_of
from tests.operations.rows import addition, append, chunk, create_tasks, creation, expire, status, wish

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]


def test_a_group_of_creations_is_stored_whole(owner: Person) -> None:
    create_tasks(owner, 70)
    assert (Task.objects.count(), Event.objects.count(), IdempotencyKey.objects.count()) == (70, 70, 70)


def test_a_key_that_is_known_answers_with_what_it_stands_for(owner: Person, stranger: Person) -> None:
    (first,) = create_tasks(owner)
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
    """Return items that the database refuses."""
    items = [("taken", creation(owner, "bad", id=known))]
    return [*items, ("nul", creation(owner, "bad", context="a\0b"))] if on_postgres() else items


def test_one_bad_item_of_a_group_fails_alone(owner: Person) -> None:
    (known,) = create_tasks(owner)
    for name, item in bad(owner, known):
        group = [creation(owner, f"{name}{place}") for place in range(12)]
        results = do_group(Create, [*group[:7], item, *group[7:]])
        assert isinstance(results[7], Exception)
        assert [result for place, result in enumerate(results) if place != 7] == [None] * 12
        assert not IdempotencyKey.objects.filter(key="bad").exists()
    assert Task.objects.count() == 1 + 12 * len(bad(owner, known))


def test_a_group_of_appends_gives_each_its_number(owner: Person) -> None:
    ids = create_tasks(owner, 5)
    results = append_many([addition(task_id, chunk("a"), chunk("b")) for task_id in ids[:4]])
    assert results == [Appended(3, False)] * 4
    assert dict(Task.objects.values_list("id", "last_seq")) == dict(zip(ids, [3, 3, 3, 3, 1], strict=True))


def test_a_copy_of_a_change_counts_its_events_once(owner: Person) -> None:
    (task_id,) = create_tasks(owner)
    item = addition(task_id, MessageAdded(message=message("hello")), chunk("a"))
    copy = replace(item, after=1)
    assert (copy.size, copy.messages, copy.last_message) == (item.size, 1, 1)
    assert item.size == sum(len(event.payload) for event in item.events)


def test_an_append_whose_key_is_known_is_refused_whole(owner: Person) -> None:
    """Two calls with one follow-up message both find its key unknown, and both append: the second must fail."""
    (task_id,) = create_tasks(owner)
    outcomes = [do_group(Append, [addition(task_id, chunk("a"), key=key_of(owner, task_id))]) for _ in range(2)]
    assert outcomes[0] == [Appended(2, False)]
    assert isinstance(outcomes[1][0], IntegrityError)
    assert Task.objects.get().last_seq == 2


def test_a_group_of_reads_is_told_apart_by_who_asks(owner: Person, stranger: Person) -> None:
    one, two = create_tasks(owner, 2)
    asks = [
        ReadTask(task_id=one, sight=access.sight(owner.caller, one)),
        ReadTask(task_id=one, sight=access.sight(stranger.caller, one)),
        ReadTask(task_id=one, sight=None),
        ReadTask(task_id=two, sight=access.sight(stranger.caller, two)),
        ReadTask(task_id="missing", sight=None),
    ]
    assert [read.document.id if read else None for read in read_many(asks)] == [one, None, one, None, None]


def test_a_history_that_is_not_wanted_is_not_read(owner: Person) -> None:
    one, other = create_tasks(owner, 2)
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


def test_a_caller_that_wants_a_history_gets_it_beside_others_that_do_not(owner: Person) -> None:
    (task_id,) = create_tasks(owner)
    append(task_id, MessageAdded(message=Message(message_id="m", role=Role.USER, parts=(Part(text="psst"),))))
    wishes = [ReadTask(task_id=task_id, sight=None, history=wanted) for wanted in (False, True)]
    assert ["psst" in read.document.history for read in read_many(wishes)] == [True, True]
    assert [read.document.history for read in read_many(wishes[:1])] == [None]


def test_no_caller_appends_to_a_task_out_of_its_sight(owner: Person, stranger: Person) -> None:
    (task_id,) = create_tasks(owner)
    assert append(task_id, status(TaskState.CANCELED), sight=access.sight(stranger.caller, task_id)) is None
    assert append(task_id, status(TaskState.CANCELED), sight=access.sight(owner.caller, task_id))


@pytest.mark.parametrize("end", ["completed", "failed", "canceled", "rejected"])
def test_a_task_that_has_ended_takes_no_event(owner: Person, end: str) -> None:
    (task_id,) = create_tasks(owner)
    assert append(task_id, status(TaskState(end)))
    for event in (status(TaskState.WORKING), status(TaskState(end)), chunk("late")):
        assert append(task_id, event) is None
    assert Task.objects.get().last_seq == 2


def test_the_fence_refuses_an_old_attempt(owner: Person) -> None:
    create_tasks(owner)
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
    create_tasks(owner)
    (read,) = claim(wish())
    assert append(read.document.id, status(TaskState.COMPLETED), fence=1)
    row = Task.objects.get()
    assert (row.lease_owner, row.lease_until, row.deadline) == (None, None, None)
