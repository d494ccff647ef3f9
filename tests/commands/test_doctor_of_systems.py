"""The doctor finds workflows, batches and answers that no process goes on with, and memory that does not add up."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tasks_app import clock
from tasks_app.callers.access import Caller
from tasks_app.database.bridge import bridge
from tasks_app.doctor import Examination, Finding, examine
from tasks_app.models import AgentAnswer, Batch, MemoryUse, PhaseTask, SharedStream, Task, Workflow
from tests.conftest import Person
from tests.operations.remembering import put
from tests.operations.rows import creation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]
AGO = timedelta(hours=1)
SOON = timedelta(seconds=5)


@pytest.fixture(autouse=True)
def _lanes(transactional_db: None) -> Any:
    """Real lanes, and no check that the logs are whole: tasks are damaged here."""
    yield
    bridge.stop()


def findings() -> list[Finding]:
    """Return what the doctor finds in all rows but the logs of tasks."""
    return [found for found in examine(None, Examination()) if found.kind != "log"]


def times(caller: Caller, **names: datetime) -> dict[str, Any]:
    return {"tenant_id": caller.tenant_id, "owner_id": caller.owner_id, "created_at": clock.now() - AGO} | names


def workflow(owner: Person, **values: Any) -> Workflow:
    """Return a workflow that has been executed for an hour."""
    known = {"id": "w-1", "name": "w", "state": "active", "phase": "specification", "runs_until": "completion"}
    return Workflow.objects.create(**times(owner.caller, updated_at=clock.now() - AGO) | known | values)


def phase_task(row: Workflow, task_id: str) -> PhaseTask:
    values = {"phase": "specification", "agent": "a", "is_executed": True, "created_at": clock.now() - AGO}
    return PhaseTask.objects.create(workflow=row, task_id=task_id, **values)


def task(owner: Person, **values: Any) -> str:
    """Return a task that began an hour ago."""
    item = creation(owner, "k")
    bridge.do(item)
    assert item.task
    Task.objects.filter(pk=item.task.id).update(status_at=clock.now() - AGO, **values)
    return item.task.id


def batch(owner: Person, id: str, due_at: datetime | None) -> Batch:
    numbers = {"size": 2, "max_concurrent": 1, "batch_size": 1, "optimization": "performance"}
    names = {"id": id, "operation": "o", "agent": "a", "scopes": "", "due_at": due_at}
    return Batch.objects.create(**times(owner.caller) | names | numbers)


# -------------------------------------------------------------- workflows


def test_a_due_workflow_that_no_process_takes_is_found(owner: Person) -> None:
    row = workflow(owner, due_at=clock.now() - SOON)
    assert findings() == []
    Workflow.objects.update(due_at=clock.now() - AGO)
    (found,) = findings()
    assert (found.kind, found.subject) == ("workflow", row.pk)
    assert "Start a server" in found.remedy


def test_an_execution_that_waits_for_nothing_is_found(owner: Person) -> None:
    row = workflow(owner)
    (found,) = findings()
    assert (found.kind, found.subject) == ("workflow", row.pk)
    assert f"a2a workflows cancel {row.pk}" in found.remedy
    phase_task(row, task(owner, state="input-required"))
    assert findings() == []


def test_an_end_that_no_process_writes_is_found(owner: Person) -> None:
    row = workflow(owner)
    task_id = task(owner, state="completed")
    phase_task(row, task_id)
    (found,) = findings()
    assert (found.kind, found.subject) == ("workflow", row.pk)
    assert task_id in found.problem
    Task.objects.update(status_at=clock.now() - SOON)
    assert findings() == []


def test_a_deleted_task_of_a_phase_is_found(owner: Person) -> None:
    phase_task(workflow(owner), "gone")
    (found,) = findings()
    assert "Task gone of workflow w-1 has ended" in found.problem


# ---------------------------------------------------------------- batches


def test_a_due_batch_that_no_process_takes_is_found(owner: Person) -> None:
    batch(owner, "b-1", clock.now() - SOON)
    assert findings() == []
    Batch.objects.update(due_at=clock.now() - AGO)
    (found,) = findings()
    assert (found.kind, found.subject) == ("batch", "b-1")
    assert "Start a server" in found.remedy


def test_a_batch_that_is_over_with_an_open_task_is_found(owner: Person) -> None:
    task_id = task(owner, state="working", agent=":batch")
    batch(owner, task_id, None)
    (found,) = findings()
    assert (found.kind, found.subject) == ("batch", task_id)
    assert f"tasks cancel {task_id}" in found.remedy
    Batch.objects.update(due_at=clock.now() + AGO)
    assert findings() == []


# ---------------------------------------------------------- shared streams


def test_an_answer_that_no_process_goes_on_with_is_found(owner: Person) -> None:
    values = {"state": "active", "active_at": clock.now() - AGO}
    stream = SharedStream.objects.create(id="s-1", **times(owner.caller) | values)
    own = {"agent": "a", "principal_id": owner.caller.owner_id, "scopes": ""}
    for seq in (1, 2):
        AgentAnswer.objects.create(stream=stream, seq=seq, due_at=clock.now() - AGO, **own)
    (found,) = findings()
    assert (found.kind, found.subject) == ("stream", "s-1")
    assert "message 1 " in found.problem, "the second answer waits for the first"
    AgentAnswer.objects.update(waits_since=clock.now() - AGO)
    assert findings() == []


# ----------------------------------------------------------------- memory


@pytest.mark.usefixtures("service")
def test_a_room_that_is_not_that_of_its_entries_is_found(owner: Person, stranger: Person) -> None:
    for who in (owner, stranger):
        put(who, "one", "12345")
        put(who, "two", "12345")
    assert findings() == []
    MemoryUse.objects.filter(pk=owner.caller.owner_id).update(size=13)
    (found,) = findings()
    assert (found.kind, found.subject) == ("memory", str(owner.caller.owner_id))
    assert "2 entries with 14 bytes, but is counted as 2 entries with 13 bytes" in found.problem
