"""The act of operators on batches: to cancel one."""

from a2a.errors import TaskNotCancelable, TaskNotFound
from a2a.states import TaskState
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.hints import DueRows, hints
from tasks_app.models import Batch
from tasks_app.operations.dispatcher import cancel_for_operator
from tasks_app.operators.audit import Change, Operator
from tasks_app.operators.refusals import ActRefused


def cancel(batch_id: str, by: Operator) -> None:
    """Cancel the task of a batch; the keeper then cancels the items at work, and begins no other. Raises ActRefused."""
    row = bridge.do(Do(lambda: Batch.objects.filter(pk=batch_id).first())) if "\0" not in batch_id else None
    if row is None:
        raise ActRefused("There is no such batch.")
    change = Change(row, {"state": TaskState.WORKING.value}, {"state": TaskState.CANCELED.value})
    try:
        cancel_for_operator(row.pk, by, change)
    except (TaskNotFound, TaskNotCancelable):
        raise ActRefused("It cannot be canceled: it is over.") from None
    hints.due(DueRows.BATCHES)
