"""A large task is read by itself, and its history goes from the log into the answer."""

import pytest

from a2a.events import MessageAdded
from a2a.states import TaskState
from a2a.types import Message, Part, Role
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Elsewhere
from tasks_app.event_log import ReadTask, Refresh, TaskRead, read_many
from tasks_app.event_log.columns import SMALL
from tasks_app.models import Event, Task
from tests.conftest import Person
from tests.operations.rows import addition, chunk, creation, status

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def create_task(owner: Person) -> str:
    item = creation(owner, "k")
    bridge.do(item)
    assert item.task
    return item.task.id


def message_event(text: str) -> MessageAdded:
    return MessageAdded(message=Message(message_id=text[:9], role=Role.USER, parts=(Part(text=text),)))


def read(task_id: str) -> TaskRead:
    found = bridge.do(ReadTask(task_id=task_id, sight=None))
    assert found is not None
    return found


def whole(task_id: str) -> TaskRead:
    (found,) = read_many([ReadTask(task_id=task_id, sight=None)])
    assert found is not None
    return found


@pytest.mark.parametrize("refreshed", [0, 2, 4])
def test_a_long_history_is_the_folded_one(owner: Person, refreshed: int) -> None:
    """With no snapshot, a small one, and one that is too large to be taken."""
    task_id = create_task(owner)
    events = [chunk("a"), message_event("x" * SMALL), status(TaskState.WORKING, "well"), message_event("\N{SNOWMAN}")]
    for place, event in enumerate([*events, status(TaskState.WORKING), chunk("b", append=True)]):
        bridge.do(addition(task_id, event))
        if place + 1 == refreshed:
            bridge.do(Refresh(task_id=task_id))
    found, expected = read(task_id), whole(task_id)
    assert found.document.long_history is not None
    assert bytes(found.document.json()) == bytes(expected.document.json())
    assert (found.document.seq, found.size, found.run_seq) == (7, expected.size, expected.run_seq)
    for length in (0, 1, 2, 9):
        assert bytes(found.document.json(length)) == bytes(expected.document.json(length))


def test_a_small_task_keeps_its_history_as_text(owner: Person) -> None:
    task_id = create_task(owner)
    bridge.do(addition(task_id, message_event("x")))
    assert read(task_id).document.long_history is None
    assert read(task_id) == whole(task_id)


def test_a_large_task_that_was_deleted_is_not_found(owner: Person) -> None:
    task_id = create_task(owner)
    bridge.do(addition(task_id, message_event("x" * SMALL)))
    (elsewhere,) = ReadTask.do_many([ReadTask(task_id=task_id, sight=None)])
    Event.objects.filter(task_id=task_id).delete()
    Task.objects.filter(pk=task_id).delete()
    assert bridge.do(elsewhere.instead) is None  # type: ignore[union-attr]


def test_a_task_whose_size_nobody_has_counted_is_read_like_a_large_one(owner: Person) -> None:
    """A version without the column stores tasks with the size 0, however large they are."""
    task_id = create_task(owner)
    bridge.do(addition(task_id, message_event("x")))
    expected = whole(task_id)
    Task.objects.filter(pk=task_id).update(size=0)
    for history in (True, False):
        item = ReadTask(task_id=task_id, sight=None, history=history)
        (first,) = read_many([item], small=True)
        assert first is not None
        assert (first.document.artifacts, first.document.history) == (None, None), "no text is read with others"
        (elsewhere,) = ReadTask.do_many([item])
        assert isinstance(elsewhere, Elsewhere)
    assert bytes(read(task_id).document.json()) == bytes(expected.document.json())
    Task.objects.filter(pk=task_id).update(size=expected.size)
