"""The act of operators on workflows: to end one with its unfinished tasks."""

from functools import partial

from django.db import transaction

from a2a.errors import PhaseRefused, TaskNotCancelable, TaskNotFound
from a2a.workflows import WorkflowState
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.operations.dispatcher import cancel_for_operator
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.refusals import ActRefused
from tasks_app.workflows.log import cancel as end


def cancel(workflow_id: str, by: Operator) -> None:
    """End a workflow for good, and cancel its unfinished tasks. Raises ActRefused."""
    for task_id in bridge.do(Do(partial(_end, workflow_id, by))):
        try:
            cancel_for_operator(task_id, by)
        except (TaskNotFound, TaskNotCancelable):
            continue  # It has ended meanwhile.


def _end(workflow_id: str, by: Operator) -> list[str]:
    """End the workflow and record the act, in one transaction; return the tasks that have not ended."""
    with transaction.atomic():
        try:
            ending = end(workflow_id, by.reason) if "\0" not in workflow_id else None
        except PhaseRefused as error:
            raise ActRefused(f"It cannot be done: {error.facts['detail'].lower()}.") from None
        if ending is None:
            raise ActRefused("There is no such workflow.")
        row, tasks = ending
        change = Change(row, {"state": WorkflowState.ACTIVE.value}, {"state": WorkflowState.CANCELED.value})
        record_acts(by, "cancel", change)
        return list(tasks)
