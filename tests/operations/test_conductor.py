"""The conductor of workflows hears of the ends of the tasks that it has begun."""

import asyncio

import pytest
from asgiref.sync import async_to_sync

from a2a.states import TaskState
from a2a.workflows import PHASES, ExecuteWorkflow
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.hints import Reached
from tasks_app.models import PhaseTask
from tasks_app.operations import Context, perform
from tasks_app.operations.conductor import Conductor
from tests.conftest import PATIENCE, Person
from tests.operations.asking import message

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
