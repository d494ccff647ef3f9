"""The bridge under load: groups, races, a row that somebody else holds, and connections that break."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import product
from typing import Any

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as django_settings
from django.db import IntegrityError, OperationalError, connection, connections

from a2a.errors import RateLimited, TaskNotCancelable
from a2a.requests import CancelTask, CreatePushConfig, DeletePushConfig, ListTasks
from a2a.states import TERMINAL, TaskState
from tasks_app import clock
from tasks_app.callers.access import sight
from tasks_app.database import prepared as statements
from tasks_app.database.bridge import bridge
from tasks_app.database.groups import do_group
from tasks_app.database.lanes import GROUP, take
from tasks_app.database.locks import LockRefused, pauses
from tasks_app.database.waits import Ticket
from tasks_app.database.work import LOCKED, Do, DoAlone, DoSlowly, Elsewhere
from tasks_app.event_log import Append, Appended, KeyTarget, ReadTask, Refresh, read_many
from tasks_app.event_log.read import SMALL
from tasks_app.hints import hints
from tasks_app.ids import uuid7_at
from tasks_app.models import Delivery, Event, IdempotencyKey, PushConfig, Task
from tasks_app.operations import Context, perform, perform_now
from tasks_app.process.health import find_problems
from tasks_app.upkeep.sweeps import Sweeper
from tasks_app.webhooks import disable, leases
from tasks_app.webhooks.schedule import TryResult
from tests.conftest import PATIENCE, Person, on_postgres, until
from tests.operations.asking import ask, message, page, sent
from tests.operations.rows import LONG_AGO, addition, chunk, creation, expire, forget, status, together, wish
from tests.operations.webhooks import OPS, config, happens, hook, hooked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]
needs_row_locks = pytest.mark.skipif(not on_postgres(), reason="SQLite locks no rows")
keeps_plans = pytest.mark.skipif(not on_postgres(), reason="SQLite has no server that would keep plans")


def made(owner: Person, key: str = "k", **more: Any) -> str:
    item = creation(owner, key, **more)
    assert bridge.do(item) is None
    assert item.task
    return item.task.id


# ------------------------------------------------------------------ groups


def test_a_group_holds_equal_items_once_and_keeps_the_order_of_the_rest() -> None:
    queue: Any = deque(Ticket(text) for text in ("a1", "a2", "b1", "a3", "c1"))
    first = take(queue, lambda item: item[0])
    assert [ticket.item for ticket in first] == ["a1", "b1", "c1"]
    assert [ticket.item for ticket in queue] == ["a2", "a3"]


def test_a_group_is_bounded() -> None:
    queue: Any = deque(map(Ticket, range(100)))
    assert len(take(queue, None)) == GROUP
    assert len(take(queue, lambda item: item)) == GROUP
    assert len(queue) == 100 - 2 * GROUP


def test_what_goes_wrong_with_one_function_is_the_answer_to_its_caller_alone() -> None:
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
    taken = made(owner)

    async def all_at_once() -> list[Any]:
        items = [creation(owner, f"k{place}", id=taken if place == 7 else "") for place in range(20)]
        return await asyncio.gather(*map(bridge.ask, items), return_exceptions=True)

    results = asyncio.run(all_at_once())
    assert isinstance(results.pop(7), IntegrityError)
    assert results == [None] * 19
    assert Task.objects.count() == 20


def test_what_a_function_raises_reaches_its_own_caller(owner: Person) -> None:
    def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        bridge.do(DoSlowly(fail))
    assert bridge.do(DoSlowly(lambda: 5)) == 5


def test_a_slow_call_holds_up_no_quick_one(owner: Person) -> None:
    task_id, going_on = made(owner), threading.Event()
    slow = threading.Thread(target=bridge.do, args=(DoSlowly(lambda: going_on.wait(PATIENCE)),))
    slow.start()
    assert bridge.do(ReadTask(task_id=task_id, sight=None)).document.id == task_id
    assert bridge.do(addition(task_id, chunk("a"))) == Appended(2, False)
    assert slow.is_alive()
    going_on.set()
    slow.join(PATIENCE)


def test_a_large_task_is_read_by_itself_and_a_small_one_beside_others(owner: Person, stranger: Person) -> None:
    large, small = made(owner, "large"), made(owner, "small")
    assert isinstance(bridge.do(addition(large, chunk("x" * SMALL))), Appended)
    asked = [ReadTask(task_id=task_id, sight=sight(owner.caller, task_id)) for task_id in (large, small)]
    foreign = ReadTask(task_id=large, sight=sight(stranger.caller, large))
    elsewhere, read, nothing = ReadTask.do_many([*asked, foreign])
    assert isinstance(elsewhere, Elsewhere)
    assert elsewhere.instead == DoAlone(elsewhere.instead.function, owner.caller.owner_id)
    assert (elsewhere.instead.lane, nothing) == ("large", None)
    assert [read] == read_many(asked[1:])
    assert [bridge.do(item) for item in asked] == read_many(asked)


def test_the_answer_to_a_change_is_read_however_many_large_reads_of_its_owner_wait(owner: Person) -> None:
    task_id, free = made(owner), threading.Event()
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
def test_of_a_large_task_no_text_is_read_beside_others(owner: Person, history: bool) -> None:
    task_id = made(owner)
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


def test_a_caller_that_has_left_is_no_trouble(owner: Person) -> None:
    task_id, going_on = made(owner), threading.Event()

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

    task_id = made(owner)
    hints.listen(deaf)
    try:
        done = [bridge.ask(addition(task_id, chunk(text))) for text in ("a", "b")]
        assert [asyncio.run(asyncio.wait_for(one, PATIENCE)).seq for one in done] == [2, 3]
    finally:
        hints.forget(deaf)
    assert "Event loop is closed" in caplog.text


# ------------------------------------------------------------------- races


def test_eight_threads_number_their_events_without_a_gap(owner: Person) -> None:
    ids = [made(owner, f"k{place}") for place in range(3)]

    def work(place: int) -> list[int]:
        return [bridge.do(addition(ids[(place + turn) % 3], chunk(f"{place}.{turn} "))).seq for turn in range(15)]

    results = together(8, work)
    assert all(isinstance(result, list) for result in results), results
    rows = Task.objects.values_list("id", "last_seq")
    assert sum(last - 1 for _, last in rows) == 8 * 15
    for task_id, last in rows:
        assert sorted(Event.objects.filter(task_id=task_id).values_list("seq", flat=True)) == list(range(1, last + 1))


@pytest.mark.parametrize("turn", range(3))
def test_of_completing_and_canceling_one_wins(owner: Person, turn: int) -> None:
    task_id = made(owner)

    def work(place: int) -> Any:
        if place % 2:
            return perform_now(CancelTask(id=task_id), Context(caller=owner.caller))
        return bridge.do(change)

    change = addition(task_id, chunk("done"), status(TaskState.COMPLETED))
    results = together(2, work)
    ends = Event.objects.filter(task_id=task_id, state__in=[state.value for state in TERMINAL])
    assert ends.count() == 1
    assert sum(isinstance(result, TaskNotCancelable) or result is None for result in results) == 1


def test_many_cancels_leave_one_event(owner: Person) -> None:
    task_id = made(owner)
    results = together(8, lambda _: perform_now(CancelTask(id=task_id), Context(caller=owner.caller)))
    assert sum(isinstance(result, TaskNotCancelable) for result in results) == 7
    assert Event.objects.filter(state="canceled").count() == 1


@pytest.mark.parametrize("agent", ["echo", "form-coroutine"])
def test_sixteen_threads_with_the_same_message_make_one_task(owner: Person, agent: str) -> None:
    said = message("hello", message_id="once")
    results = together(16, lambda _: sent(owner, said, agent, return_immediately=True))
    assert len({task.id for task in results}) == 1, results
    assert (Task.objects.count(), IdempotencyKey.objects.count()) == (1, 1)


def test_sixteen_threads_with_the_same_follow_up_append_it_once(owner: Person) -> None:
    task = sent(owner, "one", "form-coroutine", return_immediately=True)
    said = message("two", task_id=task.id, message_id="once")
    results = together(16, lambda _: sent(owner, said, return_immediately=True))
    assert {getattr(result, "id", result) for result in results} == {task.id}
    assert Event.objects.filter(kind="message").count() == 1


# ------------------------------------------------------ somebody else's doing


def other_connection() -> Any:
    values = connection.settings_dict
    return psycopg.connect(
        host=values["HOST"],
        port=values["PORT"],
        user=values["USER"],
        password=values["PASSWORD"],
        dbname=values["NAME"],
    )


@needs_row_locks
def test_a_row_that_somebody_else_holds_delays_its_own_caller_only(owner: Person) -> None:
    held, free = made(owner, "held"), made(owner, "free")
    with other_connection() as other:
        other.execute("select 1 from tasks_app_task where id = %s for update", (held,))
        late: list[Any] = []
        item, quick = addition(held, chunk("late")), [addition(free, chunk(f"{turn}")) for turn in range(20)]
        waiting = threading.Thread(target=lambda: late.append(bridge.do(item)))
        waiting.start()
        for turn, wish in enumerate(quick):
            assert bridge.do(wish).seq == turn + 2
        assert waiting.is_alive()
        assert late == []
    waiting.join(PATIENCE)
    assert late == [Appended(2, False)]


@contextmanager
def held(table: str, column: str, value: str) -> Iterator[Callable[[], None]]:
    """Somebody else has locked a row, and will not be hurried, but may be told to let go of it."""
    with other_connection() as other:
        other.execute(f"select 1 from tasks_app_{table} where {column} = %s for update", (value,))  # noqa: S608
        yield other.rollback


def waiting_for_locks() -> int:
    """How many sessions do, at this moment."""
    with other_connection() as other:
        row = other.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        ).fetchone()
    return int(row[0])


@contextmanager
def under_way(*work: Callable[[], Any]) -> Iterator[list[Any]]:
    """These are asked for meanwhile, and what came of them is known at the end."""
    results: list[Any] = []

    def one(function: Callable[[], Any]) -> None:
        try:
            results.append(function())
        except Exception as error:  # noqa: BLE001  # a result like any other
            results.append(error)
        finally:
            connections.close_all()  # those of this thread

    threads = [threading.Thread(target=one, args=(function,), daemon=True) for function in work]
    for thread in threads:
        thread.start()
    yield results
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def asked_twice(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether somebody has been told to ask again."""
    seen: list[float] = []

    def counted(seconds: float) -> Iterator[float]:
        for pause in pauses(seconds):
            seen.append(pause)
            yield pause

    monkeypatch.setattr("tasks_app.database.bridge.pauses", counted)
    return lambda: bool(seen)


@needs_row_locks
@pytest.mark.parametrize(
    ("act", "table"),
    [
        *product(("create", "delete", "append"), ("task", "pushconfig")),
        *product(("settle", "disable"), ("pushconfig",)),
    ],
)
def test_a_webhook_that_somebody_else_holds_delays_nobody_but_who_asks_for_it(
    owner: Person, monkeypatch: pytest.MonkeyPatch, act: str, table: str
) -> None:
    task_id, others = hooked(owner, "https://93.184.216.34/", id="a"), [hooked(owner, "https://93.184.216.34/")]
    happens(task_id, status(TaskState.WORKING))
    (turn,) = [turn for turn in leases.take("w", 2, leases.Busy()) if turn.task_id == task_id]
    row = PushConfig.objects.get(task_id=task_id)
    settled = partial(leases.settle, turn, TryResult(status=204), clock.now(), clock.now(), 0.5)
    acts: dict[str, Callable[[], Any]] = {
        "create": lambda: ask(
            owner, CreatePushConfig(task_id=task_id, config=config("https://93.184.216.34/x", id="a"))
        ),
        "delete": lambda: ask(owner, DeletePushConfig(task_id=task_id, id="a")),
        "append": lambda: bridge.do(addition(task_id, chunk("late"))),
        "settle": lambda: bridge.do(Do(settled)),
        "disable": lambda: disable(row.pk, OPS),
    }
    monkeypatch.setattr("tasks_app.operations.webhooks.LONGEST_TRY", timedelta())
    told = asked_twice(monkeypatch)
    with held(table, "id", task_id if table == "task" else row.pk) as let_go, under_way(acts[act]) as results:
        until(told, "it is told to ask again")
        for other in (made(owner, "new"), *others):
            happens(other, chunk("x"), chunk("y"))
            assert waiting_for_locks() == 0
        assert results == []
        let_go()
    assert not isinstance(results[0], Exception), results


@needs_row_locks
def test_a_row_that_somebody_else_holds_delays_no_list_and_no_readiness(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id, told = made(owner), asked_twice(monkeypatch)
    item = addition(task_id, chunk("late"))
    with held("task", "id", task_id) as let_go, under_way(lambda: bridge.do(item)) as results:
        until(told, "it is told to ask again")
        assert page(ask(owner, ListTasks())) == [task_id]
        assert waiting_for_locks() == 0
        assert not [reason for reason in async_to_sync(find_problems)() if reason.startswith("database")]
        assert results == []
        let_go()
    assert results == [Appended(2, False)]


@needs_row_locks
def test_a_run_asks_for_its_row_as_long_as_it_has_its_lease(
    service: None, owner: Person, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.A2A_LEASE_SECONDS = 3 * PATIENCE
    task_id = sent(owner, "hello", "waits-in-a-thread", return_immediately=True).id
    until(lambda: Event.objects.filter(task_id=task_id, actor="agent").exists(), "it has said something")
    asked: list[float] = []

    def counted(seconds: float) -> Iterator[float]:
        if threading.current_thread().name.startswith(("loop-", "doors")):  # not the sweeper
            asked.append(seconds)
        return pauses(seconds)

    monkeypatch.setattr("tasks_app.database.bridge.pauses", counted)
    with held("task", "id", task_id):
        until(lambda: asked, "it is told to ask again")
        said = Event.objects.filter(task_id=task_id).count()
    assert set(asked) == {3 * PATIENCE}
    until(lambda: Event.objects.filter(task_id=task_id).count() > said, "it goes on")
    assert Task.objects.get().fence == 1
    ask(owner, CancelTask(id=task_id))


@needs_row_locks
def test_in_a_group_only_the_task_whose_webhook_is_held_is_asked_for_again(owner: Person) -> None:
    free, taken = hooked(owner, "https://93.184.216.34/"), hooked(owner, "https://93.184.216.34/")
    items = [addition(task_id, chunk("x"), with_deliveries=True) for task_id in (taken, free)]
    with held("pushconfig", "task_id", taken):
        assert do_group(Append, items) == [LOCKED, Appended(2, False)]
    assert do_group(Append, items[:1]) == [Appended(2, False)]
    assert sorted(Delivery.objects.values_list("task_id", flat=True)) == sorted([free, taken])


@needs_row_locks
def test_a_claim_leaves_the_task_whose_webhook_is_held_and_takes_the_others(owner: Person) -> None:
    ids = []
    for key in ("one", "two"):
        ids.append(made(owner, key))
        hook(owner, ids[-1], "https://93.184.216.34/")
    with held("pushconfig", "task_id", ids[0]):
        assert [read.document.id for read in bridge.do(wish())] == [ids[1]]
    assert [read.document.id for read in bridge.do(wish())] == [ids[0]]


@needs_row_locks
def test_who_asks_for_a_row_that_stays_held_is_told_to_come_back(owner: Person) -> None:
    task_id = made(owner)
    with held("task", "id", task_id):
        with pytest.raises(LockRefused):
            bridge.do(addition(task_id, chunk("x")), patience=0.05)
        with pytest.raises(LockRefused):
            asyncio.run(bridge.ask(addition(task_id, chunk("x")), patience=0.05))
    # The doors tell callers what they tell them when the database is away.
    assert issubclass(LockRefused, OperationalError)
    assert Event.objects.filter(task_id=task_id).count() == 1


@needs_row_locks
def test_a_task_that_is_gone_is_not_taken_for_one_that_is_held(owner: Person) -> None:
    item = addition(made(owner), chunk("x"))
    Event.objects.all().delete()
    Task.objects.all().delete()
    assert bridge.do(item, patience=0) is None


@needs_row_locks
def test_the_sweeper_leaves_what_somebody_holds_and_goes_on_with_the_rest(owner: Person) -> None:
    ids = [made(owner, key) for key in ("one", "two")]
    for read in bridge.do(wish()):
        expire(read)
    with held("task", "id", ids[0]):
        Sweeper().run_round()
        assert dict(Task.objects.values_list("id", "state")) == {ids[0]: "working", ids[1]: "submitted"}
    Sweeper().run_round()
    assert set(Task.objects.values_list("state", flat=True)) == {"submitted"}


@needs_row_locks
def test_what_is_past_its_time_and_held_by_somebody_is_left_for_later(owner: Person) -> None:
    old = [made(owner, f"{place}", id=uuid7_at(LONG_AGO + timedelta(seconds=place))) for place in range(2)]
    for task_id in old:
        bridge.do(addition(task_id, status(TaskState.COMPLETED)))
    Task.objects.update(status_at=LONG_AGO)
    with held("task", "id", old[0]):
        forget()
        assert list(Task.objects.values_list("id", flat=True)) == [old[0]]
    forget()
    assert not Task.objects.exists()


@needs_row_locks
def test_a_snapshot_of_a_row_that_somebody_holds_is_left_out(owner: Person) -> None:
    task_id = made(owner)
    bridge.do(addition(task_id, chunk("x")))
    with held("task", "id", task_id):
        bridge.do(Refresh(task_id=task_id), patience=0)
        assert Task.objects.get().snapshot_seq == 1
    bridge.do(Refresh(task_id=task_id))
    assert Task.objects.get().snapshot_seq == 2


@needs_row_locks
def test_nobody_waits_long_for_a_lock_and_nobody_keeps_one_who_says_nothing() -> None:
    with connection.cursor() as cursor:
        cursor.execute("select current_setting('lock_timeout'), current_setting('statement_timeout')")
        assert cursor.fetchone() == ("2s", "0")
        cursor.execute("select current_setting('idle_in_transaction_session_timeout')")
        assert cursor.fetchone() == ("30s",)


@needs_row_locks
def test_lanes_whose_connections_were_cut_while_idle_answer_the_next_call(owner: Person) -> None:
    task_id = made(owner)
    for turn in range(2):
        assert bridge.do(ReadTask(task_id=task_id, sight=None))
        assert bridge.do(addition(task_id, chunk("a"))).seq == turn + 2
        with other_connection() as other:
            other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and pid <> all(%s)",
                (
                    django_settings.DATABASES["default"]["NAME"],
                    [other.info.backend_pid, connection.connection.info.backend_pid],
                ),
            )


@keeps_plans
def test_a_table_that_was_altered_under_plans_that_are_kept_is_read_on(owner: Person) -> None:
    task_id = made(owner)
    look = ReadTask(task_id=task_id, sight=None)
    before = [bridge.do(look) for _ in range(20)][-1]
    with connection.cursor() as cursor:
        cursor.execute("alter table tasks_app_task alter column context_id type varchar(300)")
    try:
        assert bridge.do(look) == before
        assert bridge.do(addition(task_id, chunk("a"))).seq == 2
        assert bridge.do(look).document.seq == 2
    finally:
        with connection.cursor() as cursor:
            cursor.execute("alter table tasks_app_task alter column context_id type varchar(255)")


@keeps_plans
def test_a_plan_that_is_kept_does_not_outlive_the_growth_of_its_table(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "FRESH", 0.0)
    task_id = made(owner)
    looks = [ReadTask(task_id=task_id, sight=sight(owner.caller, task_id))]
    columns = ", ".join(field.column for field in Task._meta.fields if field.column != "id")
    copies = f"select 'copy-' || n, {columns} from tasks_app_task, generate_series(1, 5000) n"  # noqa: S608  # our own
    try:
        with connection.cursor() as cursor:
            # By itself PostgreSQL keeps a plan only if it takes it for no worse than one made anew.
            cursor.execute("set plan_cache_mode = force_generic_plan")
            for _ in range(20):
                read_many(looks)
            cursor.execute(f"insert into tasks_app_task (id, {columns}) {copies}")
            read_many(looks)
            cursor.execute("select name, generic_plans from pg_prepared_statements where statement like '%snapshot%'")
            ((name, kept),) = cursor.fetchall()
            cursor.execute(f"explain execute {name} (array['x'], array['x'])")
            plan = "\n".join(line for (line,) in cursor.fetchall())
            cursor.execute("reset plan_cache_mode")
    finally:
        Task.objects.filter(id__startswith="copy-").delete()
    assert kept > 10
    assert "Index" in plan, plan
