"""The conductor of workflows hears of the ends of tasks that it has begun, and puts off those of a limited owner."""

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test.utils import CaptureQueriesContext

from a2a.states import TaskState
from a2a.workflows import PHASES, ExecuteWorkflow, SendInPhase, SetPhase
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.sql import on_postgres
from tasks_app.database.work import DoSlowly
from tasks_app.hints import Reached
from tasks_app.models import PhaseTask, Workflow
from tasks_app.operations import Context, perform
from tasks_app.operations.conductor import Conductor
from tasks_app.workflows import log
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask, message

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


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
    log.put_off_owner(owner.caller.owner_id, 5)
    due_at = dict(Workflow.objects.values_list("name", "due_at"))
    assert now + timedelta(seconds=5) <= due_at["due"] < now + timedelta(seconds=30) == due_at["taken"]
    assert due_at["idle"] is None


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


def add_deleted_tasks(who: Person, number: int) -> None:
    """Give a workflow tasks that were deleted, so that they count as ended."""
    ask(who, SetPhase(workflow="w", phase=PHASES[0]))
    workflow = Workflow.objects.get()
    for place in range(number):
        log.add_task(workflow.pk, PHASES[0], f"deleted-{place}", "specifier")
