"""Equal reads of one owner that wait for a thread: they are done once, and each caller has the result."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from a2a.errors import InvalidParams
from a2a.requests import ListTasks
from a2a.states import TaskState
from tasks_app.database import lanes
from tasks_app.database.bridge import bridge
from tasks_app.database.groups import do_group
from tasks_app.database.waits import Entry
from tasks_app.database.work import DoAlone, DoSlowly
from tasks_app.operations import Context, perform, tasks
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import message, page, sent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]


@pytest.fixture
def free() -> Iterator[threading.Event]:
    """Keep all threads for long reads at work until the event is set."""
    event = threading.Event()
    lane = bridge._lane("slow")
    for _ in lane.threads:
        bridge.put(DoSlowly(lambda: event.wait(PATIENCE)))
    until(lambda: lane.size == 0, "all threads are at work")
    yield event
    event.set()


async def waiting(number: int) -> None:
    """Return once so many reads wait for a thread."""
    lane = bridge._lane("slow")
    await asyncio.to_thread(until, lambda: lane.size >= number, f"{number} reads wait")


def test_equal_reads_that_wait_are_one_group() -> None:
    lane = lanes.SharedLane("slow", do_group, most=99, most_of_owner=99)
    lane.threads = [threading.Thread() for _ in range(99)]
    reads = [(1, "red"), (1, None), (1, "red"), (2, "red"), (1, "blue"), (1, None), (1, "red")]
    assert lane.put([Entry(DoSlowly(lambda: None, owner, key)) for owner, key in reads]) == []
    lane.put([Entry(DoAlone(lambda: None, 1, "red"))])
    groups = [lane._take() for _ in range(6)]
    assert [(kind.__name__, len(entries)) for kind, entries in filter(None, groups)] == [
        ("DoSlowly", 3),
        ("DoSlowly", 1),
        ("DoSlowly", 1),
        ("DoSlowly", 1),
        ("DoSlowly", 1),
        ("DoAlone", 1),
    ]
    assert lane._take() is None


def test_a_read_that_has_begun_takes_in_no_other() -> None:
    """Else its caller might not see what it has stored itself before it asked."""
    stored, begun, going_on = ["old"], threading.Event(), threading.Event()

    def read() -> list[str]:
        result = list(stored)
        begun.set()
        going_on.wait(PATIENCE)
        return result

    async def ask() -> list[list[str]]:
        first = asyncio.ensure_future(bridge.ask(DoSlowly(read, 1, "key")))
        await asyncio.to_thread(begun.wait, PATIENCE)
        stored.append("new")
        second = asyncio.ensure_future(bridge.ask(DoSlowly(read, 1, "key")))
        # It has a thread of its own already, or waits for one.
        await asyncio.sleep(0)
        going_on.set()
        return [await first, await second]

    assert asyncio.run(ask()) == [["old"], ["old", "new"]]


def test_the_error_of_a_read_is_the_error_of_each_caller(free: threading.Event) -> None:
    calls: list[int] = []

    def read() -> None:
        calls.append(1)
        raise InvalidParams(("pageToken", "is of another list"))

    async def ask() -> list[Any]:
        asking = [asyncio.ensure_future(bridge.ask(DoSlowly(read, 1, "key"))) for _ in range(4)]
        await waiting(4)
        asking[0].cancel()
        free.set()
        return await asyncio.gather(*asking, return_exceptions=True)

    left, *errors = asyncio.run(ask())
    assert isinstance(left, asyncio.CancelledError)
    assert [type(error) for error in errors] == [InvalidParams] * 3
    assert calls == [1]


def test_equal_lists_that_wait_are_read_once(
    free: threading.Event, owner: Person, colleague: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = sent(owner, message("mine")).id, sent(colleague, message("theirs")).id
    begin_page, reads = tasks.begin_page, []

    def note(request: ListTasks, *more: Any) -> Any:
        reads.append(request)
        return begin_page(request, *more)

    monkeypatch.setattr(tasks, "begin_page", note)

    async def list_all() -> list[Any]:
        wishes = [(owner, ListTasks()), (owner, ListTasks(state=TaskState.CANCELED)), (colleague, ListTasks())] * 3
        asking = [asyncio.ensure_future(perform(wish, Context(caller=who.caller))) for who, wish in wishes]
        await waiting(len(wishes))
        free.set()
        return await asyncio.gather(*asking)

    assert [page(result) for result in asyncio.run(list_all())] == [[own], [], [other]] * 3
    assert len(reads) == 3
