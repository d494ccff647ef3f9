"""Lanes with ends: bounds, deadlines, callers who leave, turns of owners, sessions that are of no use any more."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError, connection
from msgspec import Struct

from a2a.errors import RateLimited, Unavailable
from tasks_app.database import lanes
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import Busy
from tasks_app.database.groups import do_group
from tasks_app.database.sessions import is_overloaded, is_spent
from tasks_app.database.sql import on_postgres
from tasks_app.database.waits import CallerLeft, Entry
from tasks_app.database.work import LOCKED, Do, DoApart, DoSlowly, Work
from tasks_app.event_log import create_many
from tasks_app.models import Task
from tasks_app.process import services
from tasks_app.process.health import find_lags, find_problems, reports
from tests.conftest import PATIENCE, Person, until
from tests.operations.rows import creation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]
on_a_server = pytest.mark.skipif(not on_postgres(), reason="SQLite has no server that could make a session read-only")


@contextmanager
def busy(kind: Callable[..., Do[None]], lanes: int = 1, **more: Any) -> Iterator[threading.Event]:
    """Keep every thread of a lane at work until the event is set."""
    going_on, at_work = threading.Event(), threading.Semaphore(0)

    def work() -> None:
        at_work.release()
        going_on.wait(PATIENCE)

    for _ in range(lanes):
        bridge.put(kind(work, **more))
    for _ in range(lanes):
        assert at_work.acquire(timeout=PATIENCE)
    try:
        yield going_on
    finally:
        going_on.set()


async def outcome(item: Any, **more: Any) -> Any:
    try:
        return await bridge.ask(item, **more)
    except (Busy, CallerLeft, RateLimited) as error:
        return error


# ---------------------------------------------------------------- ends


def test_a_lane_that_is_full_refuses_at_once(settings: Any) -> None:
    settings.A2A_LANE_CALLS = 3

    async def five() -> list[Any]:
        asking = [asyncio.ensure_future(outcome(Do(lambda: "done"))) for _ in range(5)]
        _, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        assert len(waiting) == 3
        going_on.set()
        return await asyncio.gather(*asking)

    with busy(Do) as going_on:
        results = asyncio.run(five())
    refused = [result for result in results if isinstance(result, Unavailable)]
    assert (results.count("done"), len(refused)) == (3, 2)
    assert refused[0].retry_after > 0


def test_work_of_our_own_finds_room_in_a_lane_that_is_full(settings: Any) -> None:
    settings.A2A_LANE_CALLS = 1

    async def own() -> list[Any]:
        asking = [asyncio.ensure_future(outcome(Do(lambda: "ours"), patience=PATIENCE)) for _ in range(5)]
        await asyncio.sleep(0)
        going_on.set()
        return await asyncio.gather(*asking)

    with busy(Do) as going_on:
        assert asyncio.run(own()) == ["ours"] * 5


@pytest.mark.parametrize("begun", [True, False])
def test_a_caller_is_answered_at_the_deadline_whatever_the_lane_does(settings: Any, begun: bool) -> None:
    settings.A2A_CALL_SECONDS = 0.1
    done: list[str] = []

    async def one() -> Any:
        return await outcome(Do(lambda: going_on.wait(PATIENCE) if begun else done.append("late")))

    going_on = threading.Event()
    if begun:
        try:
            assert isinstance(asyncio.run(one()), Busy)
        finally:
            going_on.set()
    else:
        with busy(Do):
            assert isinstance(asyncio.run(one()), Busy)
        assert bridge.do(Do(lambda: done), PATIENCE) == [], "nobody waits for it any more"


def test_a_thread_has_an_answer_at_the_deadline_too(settings: Any) -> None:
    settings.A2A_CALL_SECONDS = 0.1
    done: list[str] = []
    with busy(Do), pytest.raises(Busy):
        bridge.do(Do(lambda: done.append("late")))
    assert bridge.do(Do(lambda: done), PATIENCE) == []


def test_to_work_of_our_own_a_late_answer_is_a_database_that_is_away() -> None:
    assert issubclass(Busy, OperationalError)
    assert issubclass(Busy, Unavailable)


def test_work_of_our_own_is_waited_for_as_long_as_it_has_patience(settings: Any) -> None:
    settings.A2A_CALL_SECONDS = 0.01
    assert bridge.do(Do(lambda: time.sleep(0.1) or "done"), patience=PATIENCE) == "done"
    assert asyncio.run(bridge.ask(Do(lambda: time.sleep(0.1) or "done"), patience=PATIENCE)) == "done"


@pytest.mark.parametrize("how", ["cancelled", "left"])
def test_work_for_a_caller_who_left_is_not_begun(settings: Any, how: str) -> None:
    done: list[str] = []

    async def leave() -> Any:
        gone = asyncio.Event()
        asking = asyncio.ensure_future(outcome(Do(lambda: done.append("for nobody")), departure=gone.wait))
        await asyncio.sleep(0)
        if how == "cancelled":
            asking.cancel()
        gone.set()
        return (await asyncio.gather(asking, return_exceptions=True))[0]

    with busy(Do):
        since = time.monotonic()
        found = asyncio.run(leave())
    assert isinstance(found, asyncio.CancelledError if how == "cancelled" else CallerLeft)
    assert time.monotonic() - since < settings.A2A_CALL_SECONDS, "it has waited as one who stays"
    assert bridge.do(Do(lambda: done)) == []


def test_nothing_is_kept_of_what_was_answered() -> None:
    async def some() -> None:
        await asyncio.gather(*(bridge.ask(Do(lambda: 1)) for _ in range(20)))
        await outcome(Do(lambda: 1), departure=asyncio.Event().wait)
        assert bridge.waits[asyncio.get_running_loop()].entries == {}

    asyncio.run(some())
    assert all(lane.size == 0 for lane in bridge.lanes.values())


# ---------------------------------------------------------------- turns


def test_owners_take_turns_in_slow_reads() -> None:
    """The order in which work is begun, with a lane whose threads are played here: a thread that the machine leaves
    waiting between taking its work and doing it changes the order of the ends, not of the turns."""
    lane = lanes.SharedLane("slow", do_group, most=99, most_of_owner=99)
    lane.threads = [threading.Thread() for _ in range(3)]
    owners = [*([1] * 10), 2, 2]
    assert lane.put([Entry(DoSlowly(lambda: None, owner)) for owner in owners]) == []

    def begin() -> int | None:
        group = lane._take()
        return group and group[1][0].item.owner

    def end(owner: int) -> None:
        lane._finish(0, [Entry(DoSlowly(lambda: None, owner))])

    assert [begin() for _ in lane.threads] == [1, 2, 1]
    end(1)
    assert begin() == 2, "each has a thread, and of the third it is the other's turn"
    end(1)
    assert begin() == 1, "with nothing at work"
    end(2)
    assert begin() == 1
    end(2)
    assert begin() is None, "the last thread is for those who have none"


def test_no_owner_has_all_connections_for_slow_reads(settings: Any) -> None:
    most = settings.A2A_READ_CONNECTIONS - 1
    with busy(DoSlowly, most, owner=1):
        bridge.put(DoSlowly(lambda: None, 1))
        assert bridge.do(DoSlowly(lambda: "others go on", 2)) == "others go on"
        assert bridge.do(DoSlowly(lambda: "so do we")) == "so do we"
        assert bridge.lanes["slow"].size == 1


def test_a_lane_ends_with_all_its_threads_when_one_owner_was_the_last() -> None:
    lane = lanes.SharedLane("slow", do_group, most=9, most_of_owner=9)
    lane.start(6)
    until(lambda: lane.idle == 6, "all are idle")
    lane.at_work["owner", 1] = 5  # As if other threads were at work for the owner.
    lane.put([Entry(DoSlowly(lambda: None, 1), patient=True)])
    lane.stop()
    until(lambda: lane.idle == 6, "all wait for the owner's turn")
    with lane.ready:
        lane.at_work.clear()
        lane.ready.notify()
    until(lambda: not any(thread.is_alive() for thread in lane.threads), "the end of its threads")


def test_an_owner_who_waits_for_too_much_is_refused_and_others_are_not(settings: Any) -> None:
    settings.A2A_OWNER_READS = 2
    threads = settings.A2A_READ_CONNECTIONS

    async def asked() -> list[Any]:
        items = [DoSlowly(lambda: "done", owner) for owner in (1, 1, 1, 1, 2)]
        asking = [asyncio.ensure_future(outcome(item)) for item in items]
        await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        going_on.set()
        return await asyncio.gather(*asking)

    with busy(DoSlowly, threads) as going_on:
        results = asyncio.run(asked())
    assert results[:2] + results[4:] == ["done"] * 3
    assert all(isinstance(result, RateLimited) for result in results[2:4])


def test_a_slow_read_ends_at_its_time_and_other_lanes_have_none(settings: Any) -> None:
    settings.A2A_READ_SECONDS = 0.2
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n where i < %s) select count(*) from n"

    def count(most: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute(endless, [most])
            (found,) = cursor.fetchone()
        return int(found)

    with pytest.raises(Busy) as refusal:
        bridge.do(DoSlowly(lambda: count(10**9), 1))
    assert refusal.value.facts["detail"] == "the read was stopped after 0.2 s: ask for less at once"
    assert bridge.do(DoSlowly(lambda: count(10), 1)) == 10
    if on_postgres():
        look = lambda: connection.cursor().execute("select current_setting('statement_timeout')").fetchone()  # noqa: E731
        limits = [bridge.do(kind(look)) for kind in (DoSlowly, Do, DoApart)]
        assert limits == [("200ms",), ("0",), ("0",)]


# --------------------------------------------------------------- health


def test_readiness_waits_for_no_callers_work(settings: Any) -> None:
    with busy(Do), busy(DoSlowly, settings.A2A_READ_CONNECTIONS):
        assert not [reason for reason in async_to_sync(find_problems)() if reason.startswith("database")]


def test_a_lane_in_which_work_hangs_is_named(settings: Any) -> None:
    settings.A2A_CALL_SECONDS = 0.05
    with busy(Do):
        until(lambda: bridge.troubles(0.05), "it is noticed")
        (reason,) = [reason for reason in async_to_sync(find_problems)() if reason.startswith("lane")]
        assert reason.startswith("lane write: the oldest work in it waits for")


def test_long_reads_of_callers_that_wait_make_no_process_unready(settings: Any) -> None:
    settings.A2A_CALL_SECONDS = 0.05
    with busy(DoSlowly, settings.A2A_READ_CONNECTIONS):
        until(lambda: bridge.lags(0.05), "it is noticed")
        assert not [reason for reason in async_to_sync(find_problems)() if reason.startswith("lane")]
        assert [lag for lag in async_to_sync(find_lags)() if lag.startswith("lane slow: the oldest work in it waits")]


def test_a_lane_whose_thread_has_ended_is_named() -> None:
    bridge.do(Do(lambda: None))
    lane = bridge.lanes["write"]
    lane.stop()
    lane.join(PATIENCE)
    lane.stopping = False
    try:
        assert bridge.troubles(PATIENCE) == [sentence := "lane write: a thread of it has ended; restart the process"]
        assert {sentence} <= {*async_to_sync(find_problems)()} & {*services.troubles()}, "in /readyz, and for doctor"
    finally:
        del bridge.lanes["write"]


def test_work_that_breaks_the_lane_itself_is_an_error_and_the_lane_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        monkeypatch.undo()
        raise RuntimeError("no descriptor is left")

    bridge.do(Do(lambda: None))
    monkeypatch.setattr("tasks_app.database.lanes.keep_connection_usable", broken)
    with pytest.raises(RuntimeError):
        bridge.do(Do(lambda: None))
    assert bridge.do(Do(lambda: "on")) == "on"


def test_many_who_ask_for_readiness_cost_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    async def counted() -> list[str]:
        looks.append(1)
        return []

    monkeypatch.setattr("tasks_app.process.health.find_problems", counted)
    monkeypatch.setattr("tasks_app.process.health.FRESH", PATIENCE)

    async def flood() -> None:
        await asyncio.gather(*(reports.latest() for _ in range(100)))
        await reports.latest()

    asyncio.run(flood())
    assert len(looks) == 1


# ------------------------------------------------------------- sessions


def refused_with(sqlstate: str) -> Exception:
    error, cause = OperationalError(), Exception()
    cause.sqlstate = sqlstate  # type: ignore[attr-defined]
    error.__cause__ = cause
    return error


def test_a_session_is_given_up_when_its_errors_say_so() -> None:
    for sqlstate in "25006 25P03 25P04 57P01 57P02 57P03 57P04 57P05 53000 53100 53300 08006".split():
        assert is_spent(refused_with(sqlstate)), sqlstate
    for sqlstate in ("", "55P03", "23505", "57014", "25P02", "54000"):
        assert not is_spent(refused_with(sqlstate)), sqlstate
    assert is_overloaded(refused_with("54000"))


@on_a_server
@pytest.mark.usefixtures("new_sessions")
def test_a_session_that_is_read_only_is_opened_anew_until_it_is_writable(owner: Person) -> None:
    def read_only(value: str) -> None:
        with connection.cursor() as cursor:
            name = connection.settings_dict["NAME"]
            cursor.execute(f"alter database {name} set default_transaction_read_only = {value}")

    def refresh() -> None:
        connection.close()

    bridge.do(Do(refresh))
    read_only("on")
    try:
        bridge.do(Do(refresh))
        with pytest.raises(Busy):
            bridge.do(creation(owner, "one"))
        with pytest.raises(Busy):
            bridge.do(Do(lambda: Task.objects.update(queue="x")))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("set default_transaction_read_only = off")
        read_only("off")
    assert bridge.do(creation(owner, "one")) is None
    assert Task.objects.count() == 1


def test_a_group_that_is_too_large_is_done_in_parts() -> None:
    class AtMostTwo(Work[int], Struct):
        number: int

        @classmethod
        def do_many(cls, items: Sequence[Self]) -> list[int]:
            if len(items) > 2:
                raise refused_with("54000")
            return [item.number for item in items]

    assert do_group(AtMostTwo, [AtMostTwo(number) for number in range(5)]) == [0, 1, 2, 3, 4]


def test_an_item_that_raises_stop_iteration_spares_its_group() -> None:
    async def settled() -> list[Any]:
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in range(2)]
        lanes._set_all([(futures[0], StopIteration("none")), (futures[1], "done")])
        return await asyncio.gather(*futures, return_exceptions=True)

    error, result = asyncio.run(settled())
    assert (repr(error), result) == ("""RuntimeError("a work item raised StopIteration('none')")""", "done")


# ------------------------------------------------------------------ keys


def test_a_key_forgotten_between_insert_and_look_is_asked_for_again(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bridge.do(creation(owner, "once")) is None
    monkeypatch.setattr("tasks_app.event_log.create.find_key_many", lambda items: [None for _ in items])
    again = creation(owner, "once")
    assert create_many([again]) == [LOCKED]
    assert again.task
    assert not Task.objects.filter(pk=again.task.id).exists()
