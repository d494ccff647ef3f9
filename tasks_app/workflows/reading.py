"""The reading of workflows, as documents."""

from collections.abc import Iterable

import orjson
from django.db.models import Sum

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
from tasks_app.database.sql import length_of
from tasks_app.models import PhaseTask, Task, Workflow


def find(owner_id: int, name: str) -> Workflow | None:
    """Return the owner's workflow of that name."""
    return Workflow.objects.filter(owner_id=owner_id, name=name).first()


def task_with_workflow(task_id: str) -> PhaseTask | None:
    """Return the row of a task of a phase, with its workflow."""
    return PhaseTask.objects.select_related("workflow").filter(task_id=task_id).first()


def document_of(workflow: Workflow, *, with_results: bool) -> WorkflowDocument:
    """Return a workflow with its phases, and with their results on request."""
    rows = list(PhaseTask.objects.filter(workflow_id=workflow.pk).defer("artifacts").order_by("pk"))
    open_ids = [row.task_id for row in rows if row.ended_at is None]
    states = dict(Task.objects.filter(pk__in=open_ids).values_list("pk", "state"))
    current, results = Phase(workflow.phase), _results_of(rows) if with_results else {}
    return WorkflowDocument(
        name=workflow.name,
        state=WorkflowState(workflow.state),
        phase=current,
        phases=tuple(
            _phase(phase, current, [row for row in rows if row.phase == phase], states, results) for phase in PHASES
        ),
        created_at=workflow.created_at,
        updated_at=workflow.updated_at,
        agent_types=tuple(orjson.loads(workflow.agent_types)),
        configuration=orjson.loads(workflow.configuration),
        runs_until=Phase(workflow.runs_until) if workflow.runs_until else None,
        reason=workflow.reason,
    )


def size_of_results(owner_id: int, name: str) -> int:
    """Return the bytes of the results of the owner's workflow of that name, without reading them on PostgreSQL."""
    rows = PhaseTask.objects.filter(workflow__owner_id=owner_id, workflow__name=name, artifacts__isnull=False)
    return rows.aggregate(size=Sum(length_of("artifacts")))["size"] or 0


def _results_of(rows: Iterable[PhaseTask]) -> dict[str, str | None]:
    """Return the result of each phase by the id of its task, the last one that has completed.

    Results may be large, so those that are not shown are not read.
    """
    last = {row.phase: row.pk for row in rows if row.state == TaskState.COMPLETED}
    return dict(PhaseTask.objects.filter(pk__in=last.values()).values_list("task_id", "artifacts"))


def _phase(
    phase: Phase, current: Phase, rows: list[PhaseTask], states: dict[str, str], results: dict[str, str | None]
) -> PhaseDocument:
    result_id = next((row.task_id for row in rows if row.task_id in results), None)
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
        artifacts=results.get(result_id or ""),
        result_task_id=result_id,
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
