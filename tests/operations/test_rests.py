"""Rests of threads after long reads of an owner who has more of them waiting, while others make small calls."""

import asyncio
from collections.abc import Awaitable
from threading import Thread

import pytest
from msgspec.structs import replace

from a2a.requests import CreatePushConfig, DeletePushConfig, GetPushConfig, ListPushConfigs, SubscribeToTask
from a2a.types import PushConfig
from a2a.workflows import GetWorkflow, Phase, SetPhase
from tasks_app.database import lanes
from tasks_app.database.bridge import bridge
from tasks_app.database.groups import do_group
from tasks_app.database.waits import Entry
from tasks_app.database.work import Do, DoSlowly
from tasks_app.event_log import as_of
from tasks_app.operations import Context, dispatcher
from tests.conftest import Person
from tests.operations.asking import ask as perform
from tests.operations.asking import message, sent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]
CONFIG = PushConfig(url="https://8.8.8.8/x", id="w", path="url", language="a2a-0.3")


def test_an_owner_with_many_reads_rests_while_others_make_small_calls() -> None:
    calls = [0]
    lane = lanes.SharedLane("slow", do_group, most=99, most_of_owner=99)
    lane.small_calls = lambda: calls[0]
    waiting, alone = Entry(DoSlowly(lambda: None, 1)), Entry(DoSlowly(lambda: None, 2))
    many, one = lanes.owner_of(waiting), lanes.owner_of(alone)
    lane.put([waiting])
    assert lane.rest_after(many, 0.01, now=100.0) == 0, "there are no small calls"
    calls[0] += lanes.SMALL_CALLS
    assert lane.rest_after(many, 0.01, now=100.1) == 0, "they are not counted yet"
    assert lane.rest_after(many, 0.01, now=101.0) == pytest.approx(0.03)
    assert lane.rest_after(many, 9.0, now=101.1) == lanes.LONGEST_REST
    assert lane.rest_after(one, 0.01, now=101.1) == 0, "nothing more of this owner waits"
    calls[0] += lanes.SMALL_CALLS - 1
    assert lane.rest_after(many, 0.01, now=102.0) == 0, "there are few small calls"


def test_an_owner_has_one_read_at_work_while_others_make_small_calls() -> None:
    calls = [0]
    lane = lanes.SharedLane("slow", do_group, most=99, most_of_owner=99)
    lane.small_calls, lane.threads = lambda: calls[0], [Thread() for _ in range(4)]
    entries = [Entry(DoSlowly(lambda: None, 1)) for _ in range(9)]
    lane.put(entries)
    owner = lanes.owner_of(entries[0])
    assert [bool(lane._take()) for _ in range(4)] == [True, True, True, False], "one thread is left to others"
    for _ in range(3):
        lane._finish(0, entries)
    assert lane.rest_after(owner, 0.01, now=100.0) == 0
    calls[0] += lanes.SMALL_CALLS
    assert lane.rest_after(owner, 0.01, now=101.0) == pytest.approx(0.03)
    assert [bool(lane._take()) for _ in range(2)] == [True, False]
    lane.put([Entry(DoSlowly(lambda: None, 2))])
    assert lane._take() is not None, "another owner has a thread of its own"
    assert lane.rest_after(owner, 0.01, now=102.0) == 0, "there are no small calls any more"
    assert [bool(lane._take()) for _ in range(3)] == [True, True, False]


def test_calls_count_as_small_and_work_of_our_own_does_not() -> None:
    async def ask() -> None:
        for lane in ("read", "write"):
            await bridge.ask(type("Small", (Do,), {"lane": lane})(lambda: 1))

    before = bridge._small_calls()
    asyncio.run(ask())
    bridge.do(Do(lambda: 1))
    assert bridge._small_calls() == before + 2


@pytest.mark.usefixtures("service")
def test_every_long_read_for_a_caller_takes_the_turn_of_its_owner(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read tasks as of old events, webhooks and workflows. A read without an owner would go before those of others."""
    owners: list[int | None] = []
    real = dispatcher._value_of

    def note(step: object, context: Context) -> Awaitable[object]:
        if isinstance(step, DoSlowly):
            owners.append(step.owner)
        return real(step, context)

    monkeypatch.setattr(as_of, "MOST_EVENTS", 1)
    task = sent(owner, "hello", agent="asks")
    monkeypatch.setattr(dispatcher, "_value_of", note)
    as_of.recent.clear()
    sent(owner, message("red", task_id=task.id), push_config=CONFIG)
    perform(owner, SetPhase(workflow="w", phase=Phase.SPECIFICATION))
    for request in (
        SubscribeToTask(id=task.id, after=2),
        CreatePushConfig(task_id=task.id, config=replace(CONFIG, id=None, language="acp")),
        GetPushConfig(task_id=task.id, id="w"),
        ListPushConfigs(task_id=task.id, page_size=9),
        DeletePushConfig(task_id=task.id, id="none", or_default=True),
        GetWorkflow(workflow="w"),
    ):
        before = len(owners)
        perform(owner, request)
        assert len(owners) > before, request
    assert set(owners) == {owner.caller.owner_id}
