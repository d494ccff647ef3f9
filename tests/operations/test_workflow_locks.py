"""Workflows whose rows another transaction has locked: they delay no lane and no other workflow."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from a2a.states import TaskState
from a2a.workflows import PHASES, ExecuteWorkflow, SetPhase
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.models import PhaseTask, Workflow
from tasks_app.operations.conductor import Conductor
from tasks_app.workflows import leases, log
from tests.conftest import Person, until
from tests.database.locks import asked_twice, lock_row, needs_row_locks, under_way, waiting_for_locks
from tests.operations.asking import ask, message

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.storage,
    pytest.mark.usefixtures("lanes"),
    needs_row_locks,
]


def begin(who: Person, name: str) -> Workflow:
    """Begin a workflow with a task that has ended."""
    ask(who, SetPhase(workflow=name, phase=PHASES[0]))
    row = Workflow.objects.get(name=name)
    log.add_task(row.pk, PHASES[0], f"deleted-{name}", "specifier")
    return row


@pytest.mark.parametrize("act", ["enter", "add", "settle", "stop", "cancel", "put off"])
def test_a_workflow_locked_elsewhere_makes_no_lane_wait(
    owner: Person, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    ask(owner, ExecuteWorkflow(workflow="held", message=message()))
    row = begin(owner, "held")
    Workflow.objects.update(due_at=row.created_at)
    key, told = PhaseTask.objects.get().pk, asked_twice(monkeypatch)
    acts: dict[str, Callable[[], Any]] = {
        "enter": lambda: ask(owner, SetPhase(workflow="held", phase=PHASES[0])),
        "add": lambda: bridge.do(Do(partial(log.add_task, row.pk, PHASES[0], "t", "specifier"))),
        "settle": lambda: bridge.do(Do(partial(log.settle, key, TaskState.FAILED, None))),
        "stop": lambda: bridge.do(Do(partial(log.stop, row.pk, "enough"))),
        "cancel": lambda: bridge.do(Do(partial(log.cancel, row.pk, "enough"))),
        "put off": lambda: bridge.do(Do(partial(leases.put_off, row.pk, 1))),
    }
    with lock_row("workflow", "id", row.pk) as let_go, under_way(acts[act]) as results:
        until(told, "it is told to ask again")
        for place in range(20):
            ask(owner, SetPhase(workflow=f"free-{place}", phase=PHASES[0]))
            assert waiting_for_locks() == 0
        assert results == []
        let_go()
    assert not isinstance(results[0], Exception), results


def test_a_workflow_locked_elsewhere_holds_up_no_round_of_a_conductor(owner: Person) -> None:
    held, free = begin(owner, "held"), begin(owner, "free")
    ask(owner, ExecuteWorkflow(workflow="due", message=message()))
    ask(owner, ExecuteWorkflow(workflow="held and due", message=message()))
    both = Workflow.objects.get(name="held and due")
    with lock_row("workflow", "id", held.pk), lock_row("workflow", "id", both.pk):
        async_to_sync(Conductor().step)()
        assert waiting_for_locks() == 0
        ended = PhaseTask.objects.filter(ended_at__isnull=False).values_list("workflow_id", flat=True)
        assert list(ended) == [free.pk]
        begun = PhaseTask.objects.filter(is_executed=True).values_list("workflow__name", flat=True)
        assert list(begun) == ["due"]
    async_to_sync(Conductor().step)()
    assert not PhaseTask.objects.filter(ended_at__isnull=True, is_executed=False).exists()
