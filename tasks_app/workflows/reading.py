"""The reading of workflows, as documents."""

from collections.abc import Iterable

import orjson

from a2a.states import TaskState
from a2a.workflows import (
    PHASES,
    Phase,
    PhaseDocument,
    PhaseState,
    PhaseTaskDocument,
    WorkflowDocument,
    WorkflowState,
)
from tasks_app.models import PhaseTask, Task, Workflow


def find(owner_id: int, name: str) -> Workflow | None:
    """Return the owner's workflow of that name."""
    return Workflow.objects.filter(owner_id=owner_id, name=name).first()


def task_with_workflow(task_id: str) -> PhaseTask | None:
    """Return the row of a task of a phase, with its workflow."""
    return PhaseTask.objects.select_related("workflow").filter(task_id=task_id).first()


def document_of(workflow: Workflow, *, with_results: bool) -> WorkflowDocument:
    """Return a workflow with its phases, and with their results on request."""
    # Of the results, which may be large, only those that are shown are read: see _phase().
    rows = list(PhaseTask.objects.filter(workflow_id=workflow.pk).defer("artifacts").order_by("pk"))
    open_ids = [row.task_id for row in rows if row.ended_at is None]
    states = dict(Task.objects.filter(pk__in=open_ids).values_list("pk", "state"))
    current = Phase(workflow.phase)
    return WorkflowDocument(
        name=workflow.name,
        state=WorkflowState(workflow.state),
        phase=current,
        phases=tuple(
            _phase(phase, current, [row for row in rows if row.phase == phase], states, with_results)
            for phase in PHASES
        ),
        created_at=workflow.created_at,
        updated_at=workflow.updated_at,
        agent_types=tuple(orjson.loads(workflow.agent_types)),
        configuration=orjson.loads(workflow.configuration),
        runs_until=Phase(workflow.runs_until) if workflow.runs_until else None,
        reason=workflow.reason,
    )


def _phase(
    phase: Phase, current: Phase, rows: list[PhaseTask], states: dict[str, str], with_results: bool
) -> PhaseDocument:
    completed = [row for row in rows if row.state == TaskState.COMPLETED]
    best = completed[-1] if completed and with_results else None
    artifacts = best.artifacts if best else None  # a read of its own
    return PhaseDocument(
        phase=phase,
        state=_state(phase, current, rows),
        tasks=tuple(
            PhaseTaskDocument(
                task_id=row.task_id,
                agent=row.agent,
                state=TaskState(row.state or states.get(row.task_id, TaskState.SUBMITTED.value)),
                created_at=row.created_at,
                ended_at=row.ended_at,
            )
            for row in rows
        ),
        artifacts=artifacts,
        result_task_id=best.task_id if best else None,
    )


def _state(phase: Phase, current: Phase, rows: Iterable[PhaseTask]) -> PhaseState:
    """Return the state of a phase: its unfinished tasks decide first, then its last one."""
    ends = [row.state for row in rows]
    if None in ends:
        return PhaseState.ACTIVE
    if TaskState.COMPLETED in ends:
        return PhaseState.COMPLETED
    if ends:
        return PhaseState.FAILED
    return PhaseState.ACTIVE if phase is current else PhaseState.PENDING
