"""The turns of the calls of one owner: who waits, for how long, and who is next."""

import asyncio
import time
from typing import Any

import pytest

from tasks_app.database.errors import Busy
from tasks_app.database.waits import CallerLeft
from tasks_app.limits.turns import SHARED_SECONDS, Turns
from tests.conftest import PATIENCE

ANN, BOB = 1, 2


@pytest.fixture
def turns(settings: Any) -> Turns:
    settings.A2A_OWNER_CALLS = 1
    return Turns()


class Hand:
    """The hand of the clock by which owners share."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def on(self, seconds: float) -> None:
        self.seconds += seconds

    def __call__(self) -> float:
        return time.monotonic() + self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Hand:
    hand = Hand()
    monkeypatch.setattr("tasks_app.limits.turns.monotonic", hand)
    return hand


async def all_given(turns: Turns) -> None:
    """Check that each turn is given back in the next round of the loop."""
    await asyncio.sleep(0)
    assert turns.lines == {}


async def waiting(turns: Turns, number: int, **more: Any) -> list["asyncio.Task[Any]"]:
    """Return calls of Ann that wait for a turn."""
    calls = [asyncio.ensure_future(turns.take(ANN, **more)) for _ in range(number)]
    await asyncio.sleep(0)
    assert not any(call.done() for call in calls)
    return calls


async def test_an_owner_at_the_limit_waits_and_others_do_not(turns: Turns) -> None:
    first = await turns.take(ANN)
    second, third = await waiting(turns, 2)
    (await turns.take(BOB)).end()
    first.end()
    first.end()
    await asyncio.wait({second, third}, return_when=asyncio.FIRST_COMPLETED)
    assert second.done()
    assert not third.done(), "who comes first is first, and a turn is given back once"
    second.result().end()
    (await third).end()
    await all_given(turns)


async def test_an_owner_has_an_eighth_while_others_call(turns: Turns, settings: Any, clock: Hand) -> None:
    settings.A2A_OWNER_CALLS = 16
    many = [await turns.take(ANN) for _ in range(16)]
    (await turns.take(BOB)).end()
    calls = await waiting(turns, 16)
    for turn in many[:14]:
        turn.end()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not any(call.done() for call in calls), "two are at work"
    many[14].end()
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    assert [call.done() for call in calls] == [True] + [False] * 15
    clock.on(SHARED_SECONDS)
    many[15].end()
    await asyncio.wait_for(asyncio.gather(*calls), PATIENCE)
    for call in calls:
        call.result().end()
    await all_given(turns)


async def test_a_turn_that_is_given_back_is_one_of_the_next_round(turns: Turns, settings: Any) -> None:
    """Otherwise calls that wait for nothing would all be answered in one round of the loop."""
    settings.A2A_OWNER_CALLS = 2
    ended: list[int] = []

    async def answer(number: int) -> None:
        turn = await turns.take(ANN)
        ended.append(number)
        turn.end()

    calls = [asyncio.ensure_future(answer(number)) for number in range(6)]
    await asyncio.sleep(0)
    assert ended == [0, 1]
    await asyncio.gather(*calls)
    assert ended == list(range(6))
    await all_given(turns)


async def test_a_call_that_has_begun_comes_before_those_that_have_not(turns: Turns) -> None:
    first, may_end = await turns.take(ANN), asyncio.Event()
    work = asyncio.ensure_future(first.wait_outside(may_end.wait()))
    await asyncio.sleep(0)
    second = await turns.take(ANN)
    (third,) = await waiting(turns, 1)
    may_end.set()
    await asyncio.sleep(0.01)
    second.end()
    assert await work
    assert not third.done()
    first.end()
    (await third).end()
    await all_given(turns)


async def test_a_call_that_gives_up_leaves_its_place_to_the_next(turns: Turns) -> None:
    first = await turns.take(ANN)
    second, third, fourth = await waiting(turns, 3)
    second.cancel()
    first.end()
    await asyncio.sleep(0)
    third.cancel()  # It has the turn already, and does not know it yet.
    (await fourth).end()
    assert (second.cancelled(), third.cancelled()) == (True, True)
    await all_given(turns)


async def test_the_last_call_that_gives_up_with_its_turn_leaves_no_line(turns: Turns) -> None:
    first = await turns.take(ANN)
    (second,) = await waiting(turns, 1)
    first.end()
    await asyncio.sleep(0)
    second.cancel()  # It has the turn already, and does not know it yet.
    await asyncio.wait({second})
    await all_given(turns)


async def test_the_first_in_the_line_are_first_when_the_limit_rises(turns: Turns, settings: Any, clock: Hand) -> None:
    settings.A2A_OWNER_CALLS = 16
    (await turns.take(BOB)).end()
    many = [await turns.take(ANN) for _ in range(2)]
    (third,) = await waiting(turns, 1)
    clock.on(SHARED_SECONDS)
    many.append(await turns.take(ANN))
    many.append(await asyncio.wait_for(third, PATIENCE))
    for turn in many:
        turn.end()
    await all_given(turns)


async def test_a_call_whose_caller_leaves_waits_no_longer(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks_app.database.waits.WATCH_AFTER", 0.0)
    gone = asyncio.Event()

    async def departure() -> None:
        await gone.wait()

    first = await turns.take(ANN)
    (second,) = await waiting(turns, 1, departure=departure)
    gone.set()
    with pytest.raises(CallerLeft):
        await second
    assert not turns.lines[ANN].places, "memory keeps nothing of the call"
    first.end()
    await all_given(turns)


async def test_a_call_that_gets_no_turn_in_time_is_refused(turns: Turns, settings: Any) -> None:
    settings.A2A_CALL_SECONDS = 0.1
    first = await turns.take(ANN)
    with pytest.raises(Busy) as refused:
        await turns.take(ANN)
    assert "no turn" in refused.value.facts["detail"]
    first.end()
    await all_given(turns)


async def test_calls_beyond_those_that_may_wait_are_refused_at_once(turns: Turns, settings: Any) -> None:
    settings.A2A_LANE_CALLS = 1
    first = await turns.take(ANN)
    (second,) = await waiting(turns, 1)
    with pytest.raises(Busy) as refused:
        await turns.take(ANN)
    assert "too many calls" in refused.value.facts["detail"]
    first.end()
    (await second).end()
    await all_given(turns)


async def test_a_call_has_no_turn_while_it_waits_for_something_slow(turns: Turns) -> None:
    first, may_end = await turns.take(ANN), asyncio.Event()
    work = asyncio.ensure_future(first.wait_outside(may_end.wait()))
    second = await asyncio.wait_for(turns.take(ANN), PATIENCE)
    may_end.set()
    await asyncio.sleep(0.01)
    assert not work.done(), "it waits for a turn again"
    second.end()
    assert await work
    (third,) = await waiting(turns, 1)
    first.end()
    (await third).end()
    await all_given(turns)


async def test_slow_work_goes_on_without_a_turn_if_there_is_none_in_time(turns: Turns, settings: Any) -> None:
    settings.A2A_CALL_SECONDS = 0.1
    first = await turns.take(ANN)
    work = asyncio.ensure_future(first.wait_outside(asyncio.sleep(0, "done")))
    await asyncio.sleep(0)
    second = await turns.take(ANN)
    assert await work == "done"
    first.end()
    second.end()
    await all_given(turns)
