"""Large work: done by one thread at a time, with rests, while threads switch often."""

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tasks_app.off_loop import (
    LONGEST_REST,
    REST_SHARE,
    SHORTEST_WORK,
    SWITCH_SECONDS,
    Pace,
    Turn,
    lower_priority,
    off_loop,
    rest,
)
from tests.conftest import PATIENCE


class Seconds:
    """A module `time` in which each look at the clock is a step of work later."""

    def __init__(self, step: float) -> None:
        self.step, self.now = step, 0.0
        self.rests: list[float] = []

    def perf_counter(self) -> float:
        self.now += self.step
        return self.now

    def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)


def test_large_work_rests_for_a_share_of_its_time_and_other_work_never(monkeypatch: pytest.MonkeyPatch) -> None:
    for step, taken in ((2 * SHORTEST_WORK, REST_SHARE * 2 * SHORTEST_WORK), (9.0, LONGEST_REST)):
        seconds = Seconds(step)
        monkeypatch.setattr("tasks_app.off_loop.time", seconds)
        rest()
        assert seconds.rests == []
        asyncio.run(off_loop(rest))
        assert seconds.rests == [pytest.approx(taken)]


def test_large_work_is_done_where_no_thread_may_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(*arguments: int) -> None:
        raise PermissionError("forbidden by a sandbox")

    monkeypatch.setattr("tasks_app.off_loop.os.setpriority", forbid)
    with ThreadPoolExecutor(1, initializer=lower_priority) as threads:
        assert threads.submit(lambda: "done").result(PATIENCE) == "done"


def test_short_steps_of_large_work_add_up_to_one_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sleep costs more than a step of a few microseconds, so that a rest after each step would be most of the
    time."""
    seconds = Seconds(SHORTEST_WORK / 100)
    monkeypatch.setattr("tasks_app.off_loop.time", seconds)
    pace = Pace()
    for _ in range(1_000):
        pace.rest()
    assert len(seconds.rests) in (9, 10)
    assert all(taken == pytest.approx(REST_SHARE * SHORTEST_WORK, rel=0.02) for taken in seconds.rests)


def start_work(turn: Turn, work: Callable[[], object]) -> tuple[threading.Thread, threading.Event]:
    """Start a thread that does the work in its turn; the event is set once it has begun."""
    has_begun = threading.Event()

    def run() -> None:
        with turn.mine():
            has_begun.set()
            work()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, has_begun


def test_large_work_is_done_by_one_thread_at_a_time_and_by_another_during_a_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tasks_app.off_loop.TURN_SECONDS", PATIENCE)
    turn, order = Turn(), list[str]()
    with turn.mine():
        other, has_begun = start_work(turn, lambda: order.append("other"))
        order.append("first")
        with turn.pause():
            assert has_begun.wait(PATIENCE)
            other.join(PATIENCE)
        order.append("first again")
        last, _ = start_work(turn, lambda: order.append("last"))
        order.append("end")
    last.join(PATIENCE)
    assert order == ["first", "other", "first again", "end", "last"]
    assert not turn.lock.locked()


def test_large_work_does_not_wait_for_a_thread_that_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks_app.off_loop.TURN_SECONDS", 0.001)
    turn = Turn()
    with turn.mine():
        other, has_begun = start_work(turn, lambda: None)
        assert has_begun.wait(PATIENCE)
        other.join(PATIENCE)
        assert turn.lock.locked(), "a thread without the turn must not end that of another"
    assert not turn.lock.locked()


def test_threads_take_turns_often_while_something_large_is_done_and_no_longer() -> None:
    usual = sys.getswitchinterval()
    assert usual > 2 * SWITCH_SECONDS

    def fail() -> None:
        raise ValueError("mine")

    async def together() -> list[Any]:
        both = threading.Barrier(2, timeout=PATIENCE)

        def first() -> float:
            both.wait()
            return sys.getswitchinterval()

        return await asyncio.gather(off_loop(first), off_loop(first), off_loop(fail), return_exceptions=True)

    *seen, error = asyncio.run(together())
    assert seen == [pytest.approx(SWITCH_SECONDS)] * 2
    assert str(error) == "mine"
    assert sys.getswitchinterval() == pytest.approx(usual)
