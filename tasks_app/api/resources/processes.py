"""Servers and workers, with their clocks and troubles."""

from typing import Any

from rest_framework.exceptions import PermissionDenied

from tasks_app.api.resource import Resource, Row
from tasks_app.api.resources.acts import JsonText
from tasks_app.api.verbs import verb
from tasks_app.models import Process
from tasks_app.operators import columns
from tasks_app.operators.audit import Operator
from tasks_app.operators.reach import reach_of
from tasks_app.upkeep import processes


class ProcessRow(Row):
    troubles = JsonText()

    class Meta:
        model = Process
        fields = columns.PROCESS


class Processes(Resource):
    segment = "processes"
    model = Process
    moment = "started_at"
    serializer_class = ProcessRow

    @verb(one=False, gives_rights=True)
    def confirm_clock(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Confirm that the clock of the machine that answers is right, so that old rows are deleted again."""
        if not reach_of(self.request.user).is_whole:
            raise PermissionDenied("This deletes old rows of every tenant: ask an operator who sees every tenant.")
        return self.describe(processes.confirm_clock(operator))
