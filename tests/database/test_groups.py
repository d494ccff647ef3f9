"""Groups of work in the bridge: equal items once, one error alone, no call behind a slow one."""

import asyncio
import threading
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import IntegrityError

from a2a.errors import RateLimited
from a2a.requests import CancelTask
from tasks_app.callers.access import sight
from tasks_app.database.bridge import Bridge, bridge
from tasks_app.database.groups import do_group
from tasks_app.database.lanes import GROUP, Lane, take
from tasks_app.database.waits import Entry
from tasks_app.database.work import Do, DoAlone, DoSlowly, Elsewhere
from tasks_app.event_log import Appended, KeyTarget, ReadTask, read_many
from tasks_app.event_log.columns import SMALL
from tasks_app.hints import hints
from tasks_app.models import Event, Task
from tasks_app.operations import Context, perform
from tests.conftest import PATIENCE, Person
from tests.database.rows import create_task
from tests.operations.rows import addition, chunk, creation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]


def test_a_group_holds_equal_items_once_and_keeps_the_order_of_the_rest() -> None:
    queue: Any = deque(Entry(text) for text in ("a1", "a2", "b1", "a3", "c1"))
    first = take(queue, lambda item: item[0])
    assert [entry.item for entry in first] == ["a1", "b1", "c1"]
    assert [entry.item for entry in queue] == ["a2", "a3"]


def test_a_group_is_bounded() -> None:
    queue: Any = deque(map(Entry, range(100)))
    assert len(take(queue, None)) == GROUP
    assert len(take(queue, lambda item: item)) == GROUP
    assert len(queue) == 100 - 2 * GROUP


def test_an_error_of_one_function_in_a_group_reaches_its_caller_alone() -> None:
    done: list[str] = []

    def wrong() -> None:
        raise IntegrityError

    for kind in (Do, DoSlowly):
        items = [kind(lambda: done.append("before")), kind(wrong), kind(lambda: "after")]
        before, error, after = do_group(kind, items)
        assert (before, type(error), after) == (None, IntegrityError, "after")
    assert done == ["before", "before"], "what is done is not done again"


def test_the_same_key_twice_in_one_breath_makes_one_task(owner: Person) -> None:
    async def both() -> list[Any]:
        return await asyncio.gather(*(bridge.ask(creation(owner, "once")) for _ in range(5)))

    results = asyncio.run(both())
    known = [result for result in results if isinstance(result, KeyTarget)]
    assert (len(known), results.count(None), Task.objects.count()) == (4, 1, 1)


def test_one_bad_item_in_one_breath_is_that_callers_error_alone(owner: Person) -> None:
    taken = create_task(owner)

    async def all_at_once() -> list[Any]:
        items = [creation(owner, f"k{place}", id=taken if place == 7 else "") for place in range(20)]
        return await asyncio.gather(*map(bridge.ask, items), return_exceptions=True)

    results = asyncio.run(all_at_once())
    assert isinstance(results.pop(7), IntegrityError)
    assert results == [None] * 19
    assert Task.objects.count() == 20


def test_an_exception_of_a_function_reaches_its_own_caller(owner: Person) -> None:
    def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        bridge.do(DoSlowly(fail))
    assert bridge.do(DoSlowly(lambda: 5)) == 5


def test_a_slow_call_holds_up_no_quick_one(owner: Person) -> None:
    task_id, going_on = create_task(owner), threading.Event()
    slow = threading.Thread(target=bridge.do, args=(DoSlowly(lambda: going_on.wait(PATIENCE)),))
    slow.start()
    assert bridge.do(ReadTask(task_id=task_id, sight=None)).document.id == task_id
    assert bridge.do(addition(task_id, chunk("a"))) == Appended(2, False)
    assert slow.is_alive()
    going_on.set()
    slow.join(PATIENCE)


def test_a_large_task_is_read_by_itself_and_a_small_one_beside_others(owner: Person, stranger: Person) -> None:
    large, small = create_task(owner, "large"), create_task(owner, "small")
    assert isinstance(bridge.do(addition(large, chunk("x" * SMALL))), Appended)
    asked = [ReadTask(task_id=task_id, sight=sight(owner.caller, task_id)) for task_id in (large, small)]
    foreign = ReadTask(task_id=large, sight=sight(stranger.caller, large))
    elsewhere, read, nothing = ReadTask.do_many([*asked, foreign])
    assert isinstance(elsewhere, Elsewhere)
    assert elsewhere.instead == DoAlone(elsewhere.instead.function, owner.caller.owner_id)
    assert (elsewhere.instead.lane, nothing) == ("large", None)
    assert [read] == read_many(asked[1:])
    found = [bridge.do(item) for item in asked]
    expected = read_many(asked)
    assert [one and bytes(one.document.json()) for one in found] == [
        one and bytes(one.document.json()) for one in expected
    ]


def test_the_answer_to_a_change_is_read_whatever_large_reads_wait(owner: Person) -> None:
    task_id, free = create_task(owner), threading.Event()
    bridge.do(addition(task_id, chunk("x" * SMALL)))

    async def story() -> None:
        read = DoAlone(lambda: free.wait(PATIENCE), owner.caller.owner_id)
        reads = [asyncio.ensure_future(bridge.ask(read)) for _ in range(django_settings.A2A_OWNER_READS + 2)]
        refused, _ = await asyncio.wait(reads, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        assert [type(one.exception()) for one in refused] == [RateLimited] * len(refused) != []
        threading.Timer(0.1, free.set).start()
        answer = await perform(CancelTask(id=task_id), Context(caller=owner.caller))
        assert answer.task.state == "canceled"  # type: ignore[union-attr]
        await asyncio.gather(*reads, return_exceptions=True)

    asyncio.run(story())


@pytest.mark.parametrize("history", [True, False])
def test_no_text_of_a_large_task_is_read_beside_others(owner: Person, history: bool) -> None:
    task_id = create_task(owner)
    bridge.do(addition(task_id, chunk("x" * SMALL)))
    (read,) = read_many([ReadTask(task_id=task_id, sight=None, history=history)], small=True)
    assert read is not None
    assert (read.document.artifacts, read.document.history) == (None, None)
    assert read.document.seq == 2


def test_a_stopped_bridge_finishes_what_waits_and_starts_again(owner: Person) -> None:
    done: list[int] = []
    for number in range(100):
        bridge.put(Do(lambda number=number: done.append(number)))
    bridge.stop()
    assert done == list(range(100))
    assert bridge.do(Do(lambda: "again")) == "again"


class Stuck(Lane):
    """A lane whose thread does not end. The clock goes on while it is waited for."""

    def __init__(self, now: list[float], waits: list[float]) -> None:
        super().__init__("stuck", do_group, most=1)
        self.now, self.waits = now, waits

    def join(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now[0] += seconds


def test_a_bridge_whose_lanes_all_hang_waits_for_them_together(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waits = [0.0], list[float]()
    one = Bridge()
    one.lanes = {name: Stuck(now, waits) for name in ("read", "write", "slow")}
    monkeypatch.setattr("tasks_app.database.bridge.time", SimpleNamespace(monotonic=lambda: now[0]))
    one.stop(7.0)
    assert waits == [7.0, 0.0, 0.0]


def test_a_caller_that_has_left_is_no_trouble(owner: Person) -> None:
    task_id, going_on = create_task(owner), threading.Event()

    async def leave() -> None:
        asking = asyncio.ensure_future(bridge.ask(DoSlowly(lambda: going_on.wait(PATIENCE))))
        await asyncio.sleep(0)
        asking.cancel()

    asyncio.run(leave())
    going_on.set()
    assert bridge.do(ReadTask(task_id=task_id, sight=None))
    assert bridge.do(DoSlowly(lambda: 1)) == 1


def test_a_listener_that_fails_ends_no_lane(owner: Person, caplog: pytest.LogCaptureFixture) -> None:
    def deaf(_: Any) -> None:
        raise RuntimeError("Event loop is closed")

    task_id = create_task(owner)
    hints.listen(deaf)
    try:
        done = [bridge.ask(addition(task_id, chunk(text))) for text in ("a", "b")]
        assert [asyncio.run(asyncio.wait_for(one, PATIENCE)).seq for one in done] == [2, 3]
    finally:
        hints.forget(deaf)
    assert "Event loop is closed" in caplog.text


def test_a_damaged_task_fails_no_other_read_of_its_group(owner: Person) -> None:
    bad, good = create_task(owner, "bad"), create_task(owner, "good")
    for task_id in (bad, good):
        bridge.do(addition(task_id, chunk("hello")))
    event = Event.objects.filter(task_id=bad).latest("seq")
    rows, whole = Event.objects.filter(pk=event.pk), event.payload
    rows.update(payload=whole[:-1])
    error, read = do_group(ReadTask, [ReadTask(task_id=task_id, sight=None) for task_id in (bad, good)])
    rows.update(payload=whole)
    assert isinstance(error, ValueError)
    assert read.document.id == good
