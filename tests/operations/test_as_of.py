"""A task as of an event: wherever the fold begins, it is what folding the log up to that event gives."""

from collections.abc import Iterator

import pytest

from a2a.dialects.json.json_1_0 import document, event_of
from a2a.documents import TaskDocument
from a2a.events import MessageAdded, apply
from a2a.requests import SubscribeToTask
from a2a.states import TaskState
from a2a.types import Message, Part, Role
from tasks_app.event_log import (
    LONG,
    ReadAsOf,
    ReadEvents,
    append_many,
    as_of,
    claim,
    create_many,
    read_as_of,
    read_as_of_many,
    read_events_many,
    recent,
)
from tasks_app.models import Task
from tasks_app.operations import Follow
from tests.conftest import Person
from tests.operations.asking import ask
from tests.operations.rows import addition, chunk, creation, status, wish

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    recent.clear()
    yield
    recent.clear()


def create_task(owner: Person, key: str = "k") -> str:
    item = creation(owner, key)
    create_many([item])
    assert item.task
    return item.task.id


def talked(owner: Person, key: str = "k") -> str:
    """Return a task with events of every kind."""
    task_id = create_task(owner, key)
    claim(wish())
    said = Message(message_id="m", role=Role.USER, parts=(Part(text="psst"),))
    for event in (
        chunk("a", append=False),
        chunk("b"),
        status(TaskState.WORKING, "thinking"),
        MessageAdded(message=said),
        chunk("c"),
        chunk("anew", append=False),
        chunk("d"),
        status(TaskState.COMPLETED, "done"),
    ):
        append_many([addition(task_id, event)])
    return task_id


def folded(task_id: str) -> list[TaskDocument]:
    """Return the task as of each of its events, folded one by one."""
    (rows,) = read_events_many([ReadEvents(task_id=task_id, after=0, context_id="c")])
    agent, task, found = Task.objects.get(pk=task_id).agent, None, []
    for row in rows:
        task = apply(task, event_of(row))
        found.append(document(task, row.seq, agent))
    return found


def wanted(task_id: str, seq: int) -> ReadAsOf:
    return ReadAsOf(task_id=task_id, context_id="c", seq=seq)


@pytest.mark.parametrize("snapshot", [0, 1, 4, 7, 10])
def test_a_task_is_as_its_log_says_wherever_its_snapshot_is(owner: Person, snapshot: int) -> None:
    task_id = talked(owner)
    expected = folded(task_id)
    if snapshot:
        then = expected[snapshot - 1]
        stored = {"snapshot_status": then.status, "artifacts": then.artifacts, "history": then.history}
        Task.objects.filter(pk=task_id).update(snapshot_seq=snapshot, **stored)
    for item in [*(wanted(task_id, seq) for seq in range(1, 11)), wanted(task_id, 99)]:
        recent.clear()
        assert read_as_of_many([item]) == [expected[min(item.seq, 10) - 1]]
        recent.clear()
        assert read_as_of(item) == expected[min(item.seq, 10) - 1]


def test_a_fold_for_one_reader_serves_the_next(owner: Person) -> None:
    task_id = talked(owner)
    expected = folded(task_id)
    for seq in (3, 9, 5, 10, 10, 1):
        assert read_as_of_many([wanted(task_id, seq)]) == [expected[seq - 1]]
    kept = recent.before(wanted(task_id, 10))
    assert kept == expected[9], "the newest is kept"
    assert recent.before(wanted(task_id, 4)) is None, "what comes later is no beginning"


def test_a_group_holds_several_readers_of_one_task_and_of_none(owner: Person) -> None:
    one, other = talked(owner, "k1"), talked(owner, "k2")
    expected, others = folded(one), folded(other)
    items = [wanted(one, 2), wanted("missing", 1), wanted(other, 9), wanted(one, 7), wanted(other, 9)]
    assert read_as_of_many(items) == [expected[1], None, others[8], expected[6], others[8]]
    assert read_as_of(wanted("missing", 1)) is None


@pytest.mark.parametrize("bound", ["MOST_EVENTS", "MOST_SIZE"])
def test_a_long_log_is_left_to_be_folded_alone(owner: Person, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    task_id = talked(owner)
    monkeypatch.setattr(as_of, bound, 5)
    monkeypatch.setattr(as_of, "_TAILS_POSTGRES", as_of._TAILS_POSTGRES.replace("524288", str(as_of.MOST_SIZE)))
    item = wanted(task_id, 9)
    assert read_as_of_many([item]) == [LONG]
    assert read_as_of(item) == folded(task_id)[8]
    assert read_as_of_many([wanted(task_id, 10)]) != [LONG], "it is near to what was folded"


def test_the_cache_of_folds_is_bounded(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_of, "CACHE_SIZE", 10_000)
    ids = [talked(owner, f"k{number}") for number in range(12)]
    for task_id in ids:
        read_as_of(wanted(task_id, 9))
    assert 0 < len(recent.documents) < 12
    assert recent.size <= 10_000
    assert recent.before(wanted(ids[-1], 9)), "the newest stays"
    assert recent.size == sum(as_of._size(found) for found in recent.documents.values())


def test_a_task_that_was_deleted_is_none_although_it_was_folded(owner: Person) -> None:
    task_id = talked(owner)
    assert read_as_of(wanted(task_id, 9))
    Task.objects.filter(pk=task_id).delete()
    assert read_as_of_many([wanted(task_id, 9)]) == [None]


def test_a_stream_resumes_at_its_event_however_much_there_is_to_fold(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = talked(owner)
    expected = folded(task_id)
    for most in (1, 512):
        recent.clear()
        monkeypatch.setattr(as_of, "MOST_EVENTS", most)
        for seq in (2, 9, 4):
            found = ask(owner, SubscribeToTask(id=task_id, after=seq))
            assert isinstance(found, Follow)
            assert found.first == expected[seq - 1]
