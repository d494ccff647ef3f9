"""Rests of threads after long reads of an owner who has more of them waiting, while others make small calls."""

import asyncio

import pytest

from tasks_app.database import lanes
from tasks_app.database.bridge import bridge
from tasks_app.database.groups import do_group
from tasks_app.database.waits import Entry
from tasks_app.database.work import Do, DoSlowly

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]


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


def test_calls_count_as_small_and_work_of_our_own_does_not() -> None:
    async def ask() -> None:
        for lane in ("read", "write"):
            await bridge.ask(type("Small", (Do,), {"lane": lane})(lambda: 1))

    before = bridge._small_calls()
    asyncio.run(ask())
    bridge.do(Do(lambda: 1))
    assert bridge._small_calls() == before + 2
