"""Workflows: found by state and name, shown with their tasks and results, canceled."""

from typing import Any

from rest_framework.response import Response

from tasks_app.api.resource import OwnedRow, Resource
from tasks_app.api.verbs import verb
from tasks_app.exchanges.redaction import redact
from tasks_app.models import Workflow
from tasks_app.operations import workflow_acts as acts
from tasks_app.operators import columns
from tasks_app.operators.audit import Operator
from tasks_app.webhooks import with_files
from tasks_app.workflows.details import details_of


class WorkflowRow(OwnedRow):
    class Meta:
        model = Workflow
        fields = ("id", "tenant", "owner", *columns.WORKFLOW)


class Workflows(Resource):
    segment = "workflows"
    model = Workflow
    serializer_class = WorkflowRow
    filters = {"state": "state"}
    bounded = {"name": "name"}

    def rows(self) -> Any:
        return Workflow.objects.select_related("tenant", "owner")

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        return Response(self.describe(row) | details_of(row, redact, with_files))

    @verb()
    def cancel(self, row: Workflow, values: dict[str, Any], operator: Operator) -> None:
        """End the workflow for good, and cancel its unfinished tasks."""
        acts.cancel(row.pk, operator)
