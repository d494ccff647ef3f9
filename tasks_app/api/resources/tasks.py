"""Tasks: found by state, context or reference, shown whole, and canceled."""

from typing import Any

import orjson
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.response import Response

from a2a.errors import Error
from a2a.money import show_usd
from tasks_app import event_log, operations
from tasks_app.api.problems import Refused
from tasks_app.api.resource import OwnedRow, Resource
from tasks_app.api.verbs import verb
from tasks_app.cards.addresses import public
from tasks_app.files import with_links
from tasks_app.models import Run, Task
from tasks_app.operators import columns, lookup
from tasks_app.operators.audit import Operator

LARGE = ("status", "metadata", "snapshot_status", "artifacts", "history")
"""Columns that lists do not read."""
RUN = ("fence", "worker", "started_at", "ended_at", "outcome", "reference")


class Dollars(serializers.CharField):
    """An amount that is stored in millionths of a dollar, as text in dollars."""

    def to_representation(self, value: Any) -> str:
        return show_usd(value)


class TaskRow(OwnedRow):
    budget = Dollars(allow_null=True, help_text="The most that the caller pays, in dollars; null: no limit.")
    share = Dollars(allow_null=True, help_text="The most that stored budgets had left for it; null: enough.")
    reserved = Dollars(help_text="What stored budgets hold for it until it ends.")
    spent = Dollars(help_text="What its runs have reported.")

    class Meta:
        model = Task
        fields = ("id", "tenant", "owner", *columns.TASK)


class Tasks(Resource):
    segment = "tasks"
    model = Task
    serializer_class = TaskRow
    filters = {"state": "state"}
    bounded = {"agent": "agent", "owner": "owner"}

    def rows(self) -> Any:
        return Task.objects.select_related("tenant", "owner").defer(*LARGE)

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        return (*super().parameters(), "find")

    def select(self, rows: QuerySet[Any], values: dict[str, str]) -> QuerySet[Any]:
        # `find` takes a task id, a context id, or the reference of a failure.
        if (text := values.pop("find", None)) is not None:
            rows = lookup.find_tasks(text, rows)
        if (owner := values.pop("owner", None)) is not None:
            rows = lookup.owned_by(rows, owner)
        return super().select(rows, values)

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        stored = event_log.read_many([event_log.ReadTask(task_id=row.pk, sight=None)])[0]
        # The stored reference to a file is a secret. The output has links instead, which expire.
        task = with_links(bytes(stored.document.json()), public()) if stored else b"null"
        runs = Run.objects.filter(task_id=row.pk).order_by("id").values(*RUN)
        return Response(self.describe(row) | {"task": orjson.loads(bytes(task)), "runs": list(runs)})

    @verb()
    def cancel(self, row: Task, values: dict[str, Any], operator: Operator) -> None:
        """Cancel the task. Its agent is told to stop, and its caller sees it as canceled."""
        try:
            operations.cancel_for_operator(row.pk, operator)
        except Error as error:
            raise Refused(f"{error.sentence}.") from None
