"""The conductor of workflows hears of the ends of tasks that it has begun, puts off those of a limited owner, and
cancels those of canceled workflows."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from a2a.states import TaskState
from a2a.workflows import PHASES, ExecuteWorkflow, SendInPhase, SetPhase
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.sql import on_postgres
from tasks_app.database.work import Do, DoSlowly
from tasks_app.hints import Reached
from tasks_app.limits.rate_limits import limits
from tasks_app.limits.rates import Rate
from tasks_app.models import PhaseTask, Task, Workflow
from tasks_app.operations import Context, perform
from tasks_app.operations.conductor import Conductor
from tasks_app.operations.workflow_acts import cancel
from tasks_app.operators.audit import Operator
from tasks_app.workflows import leases, log
from tasks_app.workflows.log import Wish
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask, message

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]
OPERATOR = Operator("ada", "admin")


def test_a_conductor_hears_of_new_tasks_however_many_it_has_begun(
    owner: Person, service: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ends of some tasks come without a hint, as while Redis is away, or before their conductor watches them."""
    monkeypatch.setattr("tasks_app.operations.conductor.WATCHED", 2)

    async def story() -> None:
        conductor = Conductor()
        conductor.loop = asyncio.get_running_loop()
        conductor.watched.update({"ended unheard": None, "ended too": None})
        await perform(ExecuteWorkflow(workflow="w", phase=PHASES[0], message=message()), Context(caller=owner.caller))
        await conductor.step()
        task_id = await bridge.ask(DoSlowly(lambda: PhaseTask.objects.get().task_id))
        assert list(conductor.watched) == ["ended too", task_id]
        conductor.wakeup.clear()
        conductor.hear([Reached(task_id, 4, TaskState.COMPLETED)])
        async with asyncio.timeout(PATIENCE):
            await conductor.wakeup.wait()
        assert list(conductor.watched) == ["ended too"]

    async_to_sync(story)()


def test_an_owner_is_put_off_but_no_step_that_a_process_is_at_work_on(owner: Person, service: None) -> None:
    now = clock.shared()
    for name, seconds in (("due", 0), ("taken", 30), ("idle", None)):
        begin = ExecuteWorkflow(workflow=name, phase=PHASES[0], message=message())
        ask(owner, begin)
        due_at = None if seconds is None else now + timedelta(seconds=seconds)
        Workflow.objects.filter(name=name).update(due_at=due_at)
    leases.put_off_owner(owner.caller.owner_id, 5)
    due_at = dict(Workflow.objects.values_list("name", "due_at"))
    assert now + timedelta(seconds=5) <= due_at["due"] < now + timedelta(seconds=30) == due_at["taken"]
    assert due_at["idle"] is None


@pytest.mark.parametrize(("rate", "longest"), [(Rate(60, 10), 10), (Rate(1, 10), 20)], ids=["seconds", "minutes"])
def test_executions_of_a_limited_owner_wait_no_longer_than_the_limit_or_a_round(
    owner: Person, service: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch, rate: Rate, longest: float
) -> None:
    settings.A2A_SWEEP_SECONDS, settings.A2A_LEASE_SECONDS = 20, 40
    for name in "abc":
        ask(owner, ExecuteWorkflow(workflow=name, phase=PHASES[0], message=message()))
    monkeypatch.setitem(limits.rules, ("caller", owner.caller.owner_id), rate)
    limits.forget()
    Workflow.objects.update(due_at="2000-01-01T00:00:00Z")
    async_to_sync(Conductor().step)()
    limits.forget()
    assert PhaseTask.objects.count() == 1
    waiting = Workflow.objects.exclude(pk=PhaseTask.objects.get().workflow_id)
    rests = [(row.due_at - clock.shared()).total_seconds() for row in waiting if row.due_at]
    assert len(rests) == 2
    assert max(rests) <= longest


def test_a_conductor_goes_on_at_once_while_there_are_ends_to_write(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a caller who sends many messages in a workflow would have the workflows of others wait for minutes."""
    monkeypatch.setattr("tasks_app.operations.workflows.SETTLED", 2)
    add_deleted_tasks(owner, 3)

    async def story() -> list[bool]:
        conductor, more = Conductor(), list[bool]()
        for _ in range(3):
            conductor.wakeup.clear()
            await conductor.step()
            more.append(conductor.wakeup.is_set())
        return more

    assert async_to_sync(story)() == [True, True, False]
    assert not PhaseTask.objects.filter(ended_at__isnull=True).exists()


def test_ends_for_executions_are_written_first(owner: Person) -> None:
    add_deleted_tasks(owner, 3)
    last = PhaseTask.objects.latest("pk")
    PhaseTask.objects.filter(pk=last.pk).update(is_executed=True)
    assert log.ended_tasks(1) == [(last.pk, last.task_id)]


def test_open_and_former_tasks_cost_a_search_for_ends_no_read_of_each(owner: Person, service: None) -> None:
    for _ in range(3):
        ask(owner, SendInPhase(workflow="w", phase=PHASES[0], message=message(), agent="asks"))
    assert PhaseTask.objects.filter(ended_at__isnull=True).count() == 3
    with CaptureQueriesContext(connection) as captured:
        assert log.ended_tasks(1) == []
    assert len(captured) == 1
    if not on_postgres():  # which reads a small table as a whole
        with connection.cursor() as cursor:
            cursor.execute(f"explain query plan {captured[0]['sql']}")
            assert "phase_task_open" in str(cursor.fetchall())


def test_a_step_of_a_workflow_that_was_canceled_meanwhile_leaves_no_task_to_run(
    owner: Person, lanes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may be frozen before it sends the message of a step."""
    ask(owner, ExecuteWorkflow(workflow="w", phase=PHASES[0], message=message()))
    (row,) = leases.take_due(1)

    async def freeze(*_: object) -> None:
        await asyncio.to_thread(cancel, row.pk, OPERATOR)

    monkeypatch.setattr("tasks_app.operations.conductor._find_former", freeze)

    async def late_step() -> None:
        conductor = Conductor()
        await conductor._take(row)
        await until_idle(conductor)

    async_to_sync(late_step)()
    assert Task.objects.get().state == TaskState.CANCELED
    assert PhaseTask.objects.get().state == TaskState.CANCELED


def test_a_step_that_comes_after_its_lease_begins_no_second_task_of_its_phase(owner: Person, service: None) -> None:
    """A process takes many steps at once. While it takes the first ones, another process may take and end the last."""

    async def story() -> None:
        await perform(ExecuteWorkflow(workflow="w", message=message()), Context(caller=owner.caller))
        (late,) = await bridge.ask(Do(partial(leases.take_due, 1)))
        await bridge.ask(Do(leases.release_all))
        other = Conductor()
        async with asyncio.timeout(PATIENCE):
            while await bridge.ask(DoSlowly(Workflow.objects.filter(phase=PHASES[0]).exists)):
                await other.step()
        await Conductor()._take(late)
        assert await bridge.ask(DoSlowly(PhaseTask.objects.filter(phase=PHASES[0]).count)) == 1
        async with asyncio.timeout(PATIENCE):
            while await bridge.ask(DoSlowly(Workflow.objects.filter(state="active").exists)):
                await other.step()

    async_to_sync(story)()
    assert PhaseTask.objects.count() == Task.objects.count() == len(PHASES)


def test_two_calls_that_begin_a_workflow_at_once_begin_one_execution(
    owner: Person, lanes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither call finds the workflow of the other. The later one must not change what is under way."""
    wish, enter = Wish(name="w", phase=None), log.enter

    def overtaken(*values: Any) -> Workflow:
        monkeypatch.setattr(log, "enter", enter)
        first = log.execute(wish, owner.caller, last=None, message='["first"]', entry=None)
        log.add_task(first.pk, PHASES[0], "t-1", "specifier", is_executed=True)
        return enter(*values)

    monkeypatch.setattr(log, "enter", overtaken)
    row = log.execute(wish, owner.caller, last=PHASES[0], message='["second"]', entry=None)
    row.refresh_from_db()
    assert (row.message, row.runs_until, row.due_at) == ('["first"]', PHASES[-1], None)


def test_a_canceled_workflow_ends_with_its_tasks_though_the_operators_process_dies(
    owner: Person, lanes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise SystemExit

    for _ in range(2):
        ask(owner, SendInPhase(workflow="w", phase=PHASES[0], message=message(), agent="asks"))
    monkeypatch.setattr("tasks_app.operations.workflow_acts.cancel_for_operator", die)
    with pytest.raises(SystemExit):
        cancel(Workflow.objects.get().pk, OPERATOR)
    async_to_sync(until_idle)(Conductor())
    assert [task.state for task in Task.objects.all()] == [TaskState.CANCELED] * 2
    assert not PhaseTask.objects.filter(ended_at__isnull=True).exists()
    assert Workflow.objects.get().state == "canceled"


async def until_idle(conductor: Conductor) -> None:
    """Have the conductor make rounds until one has nothing to do."""
    while await conductor.step():
        pass


def add_deleted_tasks(who: Person, number: int) -> None:
    """Give a workflow tasks that were deleted, so that they count as ended."""
    ask(who, SetPhase(workflow="w", phase=PHASES[0]))
    workflow = Workflow.objects.get()
    for place in range(number):
        log.add_task(workflow.pk, PHASES[0], f"deleted-{place}", "specifier")
