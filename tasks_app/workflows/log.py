"""The only writer of workflows: to enter a phase, to add a task, to write a task's end with its result, to execute.

Each function is one transaction that locks the row of the workflow first. The end of a task is written by a conditional
update, so its result belongs to its phase once, however many processes look at it.
"""

from collections.abc import Sequence

import orjson
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, OuterRef, QuerySet
from msgspec import Struct

from a2a.errors import InvalidParams, PhaseRefused, WorkflowNotFound
from a2a.states import TERMINAL, TaskState
from a2a.types import Json
from a2a.workflows import MAX_CONFIGURATION, Phase, WorkflowState, following, may_enter
from tasks_app import clock
from tasks_app.callers.access import Caller
from tasks_app.callers.permissions import shows
from tasks_app.database.rows import AuditRow
from tasks_app.database.tables import AUDIT
from tasks_app.ids import uuid7
from tasks_app.limits.caps import check_cap
from tasks_app.models import PhaseTask, Task, Workflow

REST = 60
"""Seconds after which an owner with too many active workflows may try again."""
MAX_CONTEXT = 128
"""Characters of the id of a workflow's context."""
MAX_TASKS = 10_000
"""Tasks of one workflow. A read of the workflow reads all of them."""
MAX_RESULT = 1_000_000
"""Characters of a result that is stored with the workflow. A larger one is read from its task."""


class Wish(Struct, frozen=True, kw_only=True):
    """The wish of a caller for a workflow: its name, and what shall be set."""

    name: str
    address: str | None = None
    """The agent of the address of the call; None for that of the whole server."""
    phase: Phase | None
    """The phase to enter; None to stay in the current one."""
    goes_back: bool = False
    """Whether an earlier phase becomes the current one. Otherwise the workflow stays in its phase."""
    agent_types: tuple[str, ...] | None = None
    configuration: Json | None = None
    context_id: str | None = None
    """The context of a new workflow; None for one of its own."""
    begins_task: bool = True
    """Whether a task of the workflow follows, for which it must have room."""


def enter(wish: Wish, caller: Caller, entry: AuditRow | None) -> Workflow:
    """Have a workflow enter a phase, and begin it if it is not there.

    Raises PhaseRefused, RateLimited, InvalidParams for too large a configuration, and WorkflowNotFound for one that the
    address of the wish does not show.
    """
    try:
        return _enter(wish, caller, entry)
    except IntegrityError:  # Another call has begun it meanwhile.
        return _enter(wish, caller, entry)


def _enter(wish: Wish, caller: Caller, entry: AuditRow | None) -> Workflow:
    with transaction.atomic(), connection.cursor() as cursor:
        row = _lock(wish, caller)
        if row is None:
            row = _begin(wish, caller)
        else:
            if wish.begins_task:
                _check_room(row)
            _move(row, wish)
        if wish.agent_types is not None:
            row.agent_types = orjson.dumps(wish.agent_types).decode()
        if wish.configuration is not None:
            row.configuration = _with_configuration(row, wish.configuration)
        row.updated_at = clock.now()
        row.save()
        AUDIT.write(cursor, [entry] if entry else [])
    return row


def _with_configuration(row: Workflow, more: Json) -> str:
    """Return the configuration of a workflow with more members. Raises InvalidParams if it would be too large."""
    encoded = orjson.dumps(orjson.loads(row.configuration) | more).decode()
    if len(encoded) > MAX_CONFIGURATION:
        sentence = f"would give the workflow more than {MAX_CONFIGURATION:,} characters of configuration"
        raise InvalidParams(("configuration", sentence))
    return encoded


def rows_to_lock() -> QuerySet[Workflow]:
    """Return the rows of workflows, to be locked. They raise an error of the database if another transaction has locked
    one: no lane waits for that."""
    return Workflow.objects.select_for_update(nowait=True)


def _lock(wish: Wish, caller: Caller) -> Workflow | None:
    """Lock the workflow of a wish, and return it; None if it is not there.

    Raises WorkflowNotFound for one of another address: its tasks and their results are not for this one.
    """
    row = rows_to_lock().filter(owner_id=caller.owner_id, name=wish.name).first()
    if row is not None and not shows(caller, wish.address, row.address):
        raise WorkflowNotFound(workflowId=wish.name)
    return row


def _begin(wish: Wish, caller: Caller) -> Workflow:
    phase = wish.phase or Phase.SPECIFICATION
    if not may_enter(None, phase):
        raise PhaseRefused(requestedPhase=phase.value, detail="A workflow begins with the specification phase")
    if len(wish.context_id or "") > MAX_CONTEXT:
        raise InvalidParams(("message.contextId", f"must have {MAX_CONTEXT} characters at most, to be a workflow's"))
    active = Workflow.objects.filter(owner_id=caller.owner_id, ended_at__isnull=True)
    check_cap(caller.owner_id, active, settings.A2A_OWNER_WORKFLOWS, "active workflows", REST)
    now = clock.now()
    row = Workflow(
        id=uuid7(),
        tenant_id=caller.tenant_id,
        owner_id=caller.owner_id,
        name=wish.name,
        address=wish.address,
        state=WorkflowState.ACTIVE.value,
        phase=phase.value,
        context_id=wish.context_id or uuid7(),
        created_at=now,
        updated_at=now,
    )
    row.save(force_insert=True)
    return row


def _check_room(row: Workflow) -> None:
    """Check the number of tasks of a workflow. Raises InvalidParams."""
    if PhaseTask.objects.filter(workflow_id=row.pk)[:MAX_TASKS].count() >= MAX_TASKS:
        raise InvalidParams(("workflowId", f"has {MAX_TASKS:,} tasks, as many as a workflow may have: begin another"))


def _move(row: Workflow, wish: Wish) -> None:
    """Set the phase of a workflow. Raises PhaseRefused for a skip, and for a workflow that has ended."""
    current, requested = Phase(row.phase), wish.phase or Phase(row.phase)
    facts = {"currentPhase": current.value, "requestedPhase": requested.value}
    if row.state != WorkflowState.ACTIVE:
        raise PhaseRefused(**facts, detail=f"The workflow is {row.state}")
    if not may_enter(current, requested):
        raise PhaseRefused(**facts, detail="Cannot skip intermediate phases")
    is_earlier = requested != following(current) and requested != current
    if not is_earlier or wish.goes_back:
        if row.runs_until is not None and requested != current:
            raise PhaseRefused(**facts, detail="The workflow is being executed, which sets its phase")
        row.phase = requested.value


def execute(wish: Wish, caller: Caller, *, last: Phase | None, message: str | None, entry: AuditRow | None) -> Workflow:
    """Begin the execution of a workflow, unless it is being executed.

    Raises as `enter` does; and InvalidParams for a workflow without a message of an earlier execution.
    """
    with transaction.atomic():
        row = _lock(wish, caller)
        if row is not None and row.runs_until is not None:
            return row
        row = enter(wish, caller, entry)
        if row.runs_until is not None:  # Another call has begun it meanwhile.
            return row
        if message is None and not row.message:
            raise InvalidParams(("message", "is required"))
        row.message = message or row.message
        row.runs_until = (last or Phase.COMPLETION).value
        row.scopes, row.reason = " ".join(sorted(caller.scopes)), ""
        row.due_at = clock.shared()
        row.save()
    return row


def add_task(workflow_id: str, phase: Phase, task_id: str, agent: str, *, is_executed: bool = False) -> None:
    """Add a task to a phase, unless it is there. The execution that began it then waits for its end."""
    with transaction.atomic():
        row = rows_to_lock().get(pk=workflow_id)
        values = {"phase": phase.value, "agent": agent, "is_executed": is_executed, "created_at": clock.now()}
        _, is_new = PhaseTask.objects.get_or_create(task_id=task_id, defaults={"workflow": row, **values})
        # A process that was frozen may come late with a task that has ended since: the next one is due then.
        if is_executed and is_new:
            row.due_at = None
            row.save(update_fields=["due_at"])


def ended_tasks(most: int, workflow_id: str | None = None) -> list[tuple[int, str]]:
    """Return tasks of phases that have ended, and whose ends are not written: their keys and task ids.

    A task that was deleted has ended. Those of executions come first, because their workflows wait for them.
    """
    unfinished = Task.objects.filter(pk=OuterRef("task_id")).exclude(state__in=TERMINAL)
    rows = PhaseTask.objects.filter(~Exists(unfinished), ended_at__isnull=True)
    if workflow_id is not None:
        rows = rows.filter(workflow_id=workflow_id)
    return list(rows.order_by("-is_executed", "pk").values_list("pk", "task_id")[:most])


def tasks_to_cancel(most: int) -> list[PhaseTask]:
    """Return unfinished tasks of canceled workflows, with the workflows and their owners.

    A process may begin a task just as an operator cancels its workflow, and the process of an operator may die before
    it has canceled all tasks.
    """
    rows = PhaseTask.objects.filter(ended_at__isnull=True, workflow__state=WorkflowState.CANCELED.value)
    return list(rows.select_related("workflow__owner__tenant").order_by("pk")[:most])


def settle(key: int, state: TaskState, artifacts: str | None) -> bool:
    """Write the end of a task with its result, and have the execution that began it go on; return False if it is
    written already."""
    with transaction.atomic():
        place = PhaseTask.objects.values_list("workflow_id", flat=True).get(pk=key)
        workflow = rows_to_lock().get(pk=place)
        is_whole = artifacts is not None and len(artifacts) <= MAX_RESULT and state is TaskState.COMPLETED
        change = {"state": state.value, "artifacts": artifacts if is_whole else None, "ended_at": clock.now()}
        if not PhaseTask.objects.filter(pk=key, ended_at__isnull=True).update(**change):
            return False
        task = PhaseTask.objects.defer("artifacts").get(pk=key)
        _drop_former_results(task)
        if workflow.state == WorkflowState.ACTIVE and task.phase == workflow.phase:
            _go_on(workflow, task)
            workflow.updated_at = clock.now()
            workflow.save()
    return True


def _drop_former_results(task: PhaseTask) -> None:
    """Keep the result of the last task of a phase that has completed, and drop those of the tasks before it.

    No read shows them, and a workflow that is used for ever would keep them for ever.
    """
    rows = PhaseTask.objects.filter(workflow_id=task.workflow_id, phase=task.phase)
    # No order: PostgreSQL would read the tasks of all workflows from their end, in place of the index by workflow.
    last = max(rows.filter(state=TaskState.COMPLETED.value).values_list("pk", flat=True), default=None)
    if last is not None:
        rows.filter(pk__lt=last, artifacts__isnull=False).update(artifacts=None)


def _go_on(workflow: Workflow, task: PhaseTask) -> None:
    """Set what follows the end of a task in the current phase of its workflow."""
    is_last = workflow.phase == Phase.COMPLETION
    if task.state != TaskState.COMPLETED:
        if task.is_executed:
            _stop(workflow, f"The task {task.task_id} of the phase {task.phase} is {task.state}.")
        return
    if workflow.runs_until is None or not task.is_executed:
        if is_last and workflow.runs_until is None:
            _end(workflow, WorkflowState.COMPLETED)
        return
    if workflow.phase == workflow.runs_until:
        _stop(workflow, "")
        if is_last:
            _end(workflow, WorkflowState.COMPLETED)
        return
    workflow.phase = (following(Phase(workflow.phase)) or Phase.COMPLETION).value
    workflow.due_at = clock.shared()


def _stop(workflow: Workflow, reason: str) -> None:
    workflow.runs_until, workflow.due_at, workflow.reason = None, None, reason


def _end(workflow: Workflow, state: WorkflowState) -> None:
    workflow.state, workflow.ended_at = state.value, clock.now()


def stop(workflow_id: str, reason: str) -> None:
    """Stop the execution of a workflow, with the reason."""
    with transaction.atomic():
        row = rows_to_lock().get(pk=workflow_id)
        _stop(row, reason)
        row.updated_at = clock.now()
        row.save()


def cancel(workflow_id: str, reason: str) -> tuple[Workflow, Sequence[str]] | None:
    """End a workflow for good; return it with its unfinished tasks. None if it is not there.

    Raises PhaseRefused if it has ended.
    """
    with transaction.atomic():
        row = rows_to_lock().filter(pk=workflow_id).first()
        if row is None:
            return None
        if row.state != WorkflowState.ACTIVE:
            raise PhaseRefused(currentPhase=row.phase, detail=f"The workflow is {row.state}")
        _stop(row, reason)
        _end(row, WorkflowState.CANCELED)
        row.updated_at = clock.now()
        row.save()
        return row, list(row.tasks.filter(ended_at__isnull=True).values_list("task_id", flat=True))
