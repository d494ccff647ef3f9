"""The conductor of workflows hears of the ends of tasks that it has begun, and puts off those of a limited owner."""

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync

from a2a.states import TaskState
from a2a.workflows import PHASES, ExecuteWorkflow
from tasks_app import clock
from tasks_app.database.bridge import bridge
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
