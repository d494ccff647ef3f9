"""Work that a process has taken, and gives back when it is told to end: another process takes it at once."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings

from a2a.workflows import PHASES, ExecuteWorkflow
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.event_log.readers import readers
from tasks_app.event_log.rounds import Rounds
from tasks_app.models import AgentAnswer, Batch, Task, Workflow
from tasks_app.operations import conductor
from tasks_app.operations.batch_keeper import Keeper
from tasks_app.operations.moderator import Moderator
from tasks_app.workflows import leases, log
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import ask, message
from tests.operations.batching import execute
from tests.operations.conversations import say, start

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
ENDS = pytest.mark.parametrize("drains", [True, False], ids=["drained", "cut off"])


@pytest.fixture(autouse=True)
def long_leases(settings: LazySettings) -> None:
    """Have leases outlast the tests."""
    settings.A2A_LEASE_SECONDS = 10 * PATIENCE


def end_at_work(part: Rounds, is_at_work: Callable[[], Any], *, drains: bool) -> None:
    """Have a part begin, and end its process as a server does: its loop ends, and then its services stop. Before that,
    turns that look at it may end by themselves."""

    async def story() -> None:
        part.start()
        await asyncio.to_thread(until, lambda: bridge.do(DoSlowly(is_at_work)), "it is at work")
        readers.drain()
        if drains:
            await asyncio.wait([*part.under_way()], timeout=PATIENCE)

    asyncio.run(story())
    part.stop()


def is_due(rows: Any) -> Callable[[], bool]:
    """Return the condition that the only row is due."""

    def look() -> bool:
        due_at: datetime = rows.get().due_at
        return due_at <= clock.shared()

    return look


@ENDS
def test_the_batch_of_a_process_that_ends_is_due_at_once(owner: Person, drains: bool) -> None:
    execute(owner, "hello", operation="gate")
    end_at_work(Keeper(), Task.objects.filter(agent="gate").exists, drains=drains)
    until(is_due(Batch.objects), "it is due")


def test_a_batch_that_is_over_stays_over_when_its_process_ends(owner: Person) -> None:
    execute(owner, "hello")
    end_at_work(Keeper(), Batch.objects.filter(due_at=None).exists, drains=False)
    assert Batch.objects.get().due_at is None


@ENDS
def test_the_answer_in_a_shared_stream_of_a_process_that_ends_is_due_at_once(
    owner: Person, settings: LazySettings, drains: bool
) -> None:
    settings.A2A_POLL_SECONDS = PATIENCE  # Else the answer waits without a process.

    async def talk() -> None:
        await say(owner, await start(owner, "gate"))

    async_to_sync(talk)()
    end_at_work(Moderator(), AgentAnswer.objects.filter(task_id__isnull=False).exists, drains=drains)
    until(is_due(AgentAnswer.objects), "it is due")


def test_the_step_of_a_workflow_of_a_process_that_ends_is_due_at_once(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(owner, ExecuteWorkflow(workflow="w", message=message()))
    at_work = list[str]()

    async def hang(_: Any, message_id: str) -> None:
        at_work.append(message_id)
        await asyncio.Event().wait()

    monkeypatch.setattr(conductor, "_find_former", hang)
    end_at_work(conductor.Conductor(), lambda: at_work, drains=False)
    until(is_due(Workflow.objects), "it is due")


def test_a_step_of_a_workflow_that_has_begun_is_not_given_back(owner: Person) -> None:
    ask(owner, ExecuteWorkflow(workflow="w", message=message()))
    (row,) = leases.take_due(1)
    log.add_task(row.pk, PHASES[0], "t-1", "specifier", is_executed=True)
    leases.release([row])
    assert Workflow.objects.get().due_at is None
