"""Batches: found by state, owner and time, shown with their items, canceled."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from tasks_app.api.paging import read_numbers
from tasks_app.api.resource import OwnedRow, Resource
from tasks_app.api.verbs import verb
from tasks_app.batches.details import MOST, STATES, details_of, in_state, with_states
from tasks_app.models import Batch
from tasks_app.operations import batch_acts as acts
from tasks_app.operators import columns, lookup
from tasks_app.operators.audit import Operator

MOST_ITEMS = 2**31 - 1


class BatchRow(OwnedRow):
    state = serializers.CharField(allow_null=True, help_text="The state of its task; null: the task is gone.")

    class Meta:
        model = Batch
        fields = ("id", "tenant", "owner", *columns.BATCH)


class Batches(Resource):
    segment = "batches"
    model = Batch
    serializer_class = BatchRow
    few = {"state": STATES}
    page_parameters = ("after", "limit")

    def rows(self) -> Any:
        return with_states(Batch.objects.select_related("tenant", "owner"))

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        return (*super().parameters(), "state", "owner")

    def select(self, rows: QuerySet[Any], values: dict[str, str]) -> QuerySet[Any]:
        if (state := values.get("state")) is not None:
            rows = in_state(rows, state)
        return rows if (owner := values.get("owner")) is None else lookup.owned_by(rows, owner)

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        page = read_numbers(request, {"after": MOST_ITEMS, "limit": MOST}, "a batch")
        details = self.describe(row) | details_of(row, **page)
        place = request.build_absolute_uri()
        return Response(details | {"next": details["after"] and replace_query_param(place, "after", details["after"])})

    @verb()
    def cancel(self, row: Batch, values: dict[str, Any], operator: Operator) -> None:
        """Cancel the batch: its items at work are canceled, and no other begins."""
        acts.cancel(row.pk, operator)
