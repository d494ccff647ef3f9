"""Rows that another connection has locked: no lane waits for one."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError, connection

from a2a.requests import CancelTask, CreatePushConfig, DeletePushConfig, ListTasks
from a2a.states import TaskState
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.groups import do_group
from tasks_app.database.locks import LockRefused, pauses
from tasks_app.database.work import LOCKED, Do, DoSlowly
from tasks_app.event_log import Append, Appended, Refresh
from tasks_app.ids import uuid7_at
from tasks_app.models import Delivery, Event, Task, Webhook
from tasks_app.process.health import find_problems
from tasks_app.upkeep.sweeps import Sweeper
from tasks_app.webhooks import disable, leases
from tasks_app.webhooks.schedule import TryResult
from tests.conftest import PATIENCE, Person, until
from tests.database.locks import asked_twice, lock_row, needs_row_locks, other_connection, under_way, waiting_for_locks
from tests.database.rows import create_task
from tests.operations.asking import ask, page, sent
from tests.operations.rows import LONG_AGO, addition, chunk, expire, forget, status, wish
from tests.operations.webhooks import OPS, config, happens, hook, hooked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]


@needs_row_locks
def test_a_row_locked_elsewhere_delays_its_own_caller_only(owner: Person) -> None:
    held, free = create_task(owner, "held"), create_task(owner, "free")
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


@needs_row_locks
@pytest.mark.parametrize(
    ("act", "table"),
    [
        *product(("create", "delete", "append"), ("task", "pushconfig")),
        *product(("settle", "disable"), ("pushconfig",)),
    ],
)
def test_a_webhook_locked_elsewhere_delays_only_the_callers_that_need_it(
    owner: Person, monkeypatch: pytest.MonkeyPatch, act: str, table: str
) -> None:
    task_id, others = hooked(owner, "https://93.184.216.34/", id="a"), [hooked(owner, "https://93.184.216.34/")]
    happens(task_id, status(TaskState.WORKING))
    (turn,) = [turn for turn in leases.take("w", 2, leases.Busy()) if turn.task_id == task_id]
    row = Webhook.objects.get(task_id=task_id)
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
    with lock_row(table, "id", task_id if table == "task" else row.pk) as let_go, under_way(acts[act]) as results:
        until(told, "it is told to ask again")
        for other in (create_task(owner, "new"), *others):
            happens(other, chunk("x"), chunk("y"))
            assert waiting_for_locks() == 0
        assert results == []
        let_go()
    assert not isinstance(results[0], Exception), results


@needs_row_locks
def test_a_row_locked_elsewhere_delays_no_list_and_no_readiness(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id, told = create_task(owner), asked_twice(monkeypatch)
    item = addition(task_id, chunk("late"))
    with lock_row("task", "id", task_id) as let_go, under_way(lambda: bridge.do(item)) as results:
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
    with lock_row("task", "id", task_id):
        until(lambda: asked, "it is told to ask again")
        said = Event.objects.filter(task_id=task_id).count()
    assert set(asked) == {3 * PATIENCE}
    until(lambda: Event.objects.filter(task_id=task_id).count() > said, "it goes on")
    assert Task.objects.get().fence == 1
    ask(owner, CancelTask(id=task_id))


@needs_row_locks
def test_only_the_task_whose_webhook_is_locked_is_asked_for_again(owner: Person) -> None:
    free, taken = hooked(owner, "https://93.184.216.34/"), hooked(owner, "https://93.184.216.34/")
    items = [addition(task_id, chunk("x"), with_deliveries=True) for task_id in (taken, free)]
    with lock_row("pushconfig", "task_id", taken):
        assert do_group(Append, items) == [LOCKED, Appended(2, False)]
    assert do_group(Append, items[:1]) == [Appended(2, False)]
    assert sorted(Delivery.objects.values_list("task_id", flat=True)) == sorted([free, taken])


@needs_row_locks
def test_a_claim_leaves_the_task_whose_webhook_is_locked_and_takes_the_others(owner: Person) -> None:
    ids = []
    for key in ("one", "two"):
        ids.append(create_task(owner, key))
        hook(owner, ids[-1], "https://93.184.216.34/")
    with lock_row("pushconfig", "task_id", ids[0]):
        assert [read.document.id for read in bridge.do(wish())] == [ids[1]]
    assert [read.document.id for read in bridge.do(wish())] == [ids[0]]


@needs_row_locks
def test_a_caller_of_a_row_that_stays_locked_is_told_to_come_back(owner: Person) -> None:
    task_id = create_task(owner)
    with lock_row("task", "id", task_id):
        with pytest.raises(LockRefused):
            bridge.do(addition(task_id, chunk("x")), patience=0.05)
        with pytest.raises(LockRefused):
            asyncio.run(bridge.ask(addition(task_id, chunk("x")), patience=0.05))
    # The doors tell callers what they tell them when the database is away.
    assert issubclass(LockRefused, OperationalError)
    assert Event.objects.filter(task_id=task_id).count() == 1


@needs_row_locks
def test_a_task_that_is_gone_is_not_taken_for_a_locked_one(owner: Person) -> None:
    item = addition(create_task(owner), chunk("x"))
    Event.objects.all().delete()
    Task.objects.all().delete()
    assert bridge.do(item, patience=0) is None


@needs_row_locks
def test_the_sweeper_leaves_locked_rows_and_goes_on_with_the_rest(owner: Person) -> None:
    ids = [create_task(owner, key) for key in ("one", "two")]
    for read in bridge.do(wish()):
        expire(read)
    with lock_row("task", "id", ids[0]):
        Sweeper().run_round()
        assert dict(Task.objects.values_list("id", "state")) == {ids[0]: "working", ids[1]: "submitted"}
    Sweeper().run_round()
    assert set(Task.objects.values_list("state", flat=True)) == {"submitted"}


@needs_row_locks
def test_a_row_past_its_time_that_is_locked_is_left_for_later(owner: Person) -> None:
    old = [create_task(owner, f"{place}", id=uuid7_at(LONG_AGO + timedelta(seconds=place))) for place in range(2)]
    for task_id in old:
        bridge.do(addition(task_id, status(TaskState.COMPLETED)))
    Task.objects.update(status_at=LONG_AGO)
    with lock_row("task", "id", old[0]):
        forget()
        assert list(Task.objects.values_list("id", flat=True)) == [old[0]]
    forget()
    assert not Task.objects.exists()


@needs_row_locks
def test_a_snapshot_of_a_locked_row_is_left_out(owner: Person) -> None:
    task_id = create_task(owner)
    bridge.do(addition(task_id, chunk("x")))
    with lock_row("task", "id", task_id):
        bridge.do(Refresh(task_id=task_id), patience=0)
        assert Task.objects.get().snapshot_seq == 1
    bridge.do(Refresh(task_id=task_id))
    assert Task.objects.get().snapshot_seq == 2


@needs_row_locks
def test_waits_for_locks_are_short_and_idle_transactions_end() -> None:
    with connection.cursor() as cursor:
        cursor.execute("select current_setting('lock_timeout'), current_setting('statement_timeout')")
        assert cursor.fetchone() == ("2s", "0")
        cursor.execute("select current_setting('idle_in_transaction_session_timeout')")
        assert cursor.fetchone() == ("30s",)


@needs_row_locks
def test_the_lane_of_all_writes_waits_for_no_lock(owner: Person) -> None:
    """A row that no statement asks for without a wait is refused soon, and a new session knows that as well."""

    def patience() -> str:
        with connection.cursor() as cursor:
            cursor.execute("select current_setting('lock_timeout')")
            return str(cursor.fetchone()[0])

    def leave() -> None:
        connection.close()

    for _ in range(2):
        assert (bridge.do(Do(patience)), bridge.do(DoSlowly(patience)), patience()) == ("50ms", "2s", "2s")
        bridge.do(Do(leave))
    task_id = create_task(owner)
    with lock_row("task", "id", task_id), pytest.raises(LockRefused):
        bridge.do(Do(lambda: Task.objects.filter(pk=task_id).update(wants="")), patience=0)
