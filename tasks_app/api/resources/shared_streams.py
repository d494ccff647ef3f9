"""Shared streams: found by state, shown with their participants and chunks, closed, paused and resumed."""

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import verb
from tasks_app.models import SharedStream
from tasks_app.operations import shared_stream_acts as acts
from tasks_app.operators import columns
from tasks_app.operators.audit import Operator
from tasks_app.shared_streams.details import details_of


class SharedStreamRow(Row):
    tenant = serializers.CharField(source="tenant.name")
    owner = serializers.CharField(source="owner.name")

    class Meta:
        model = SharedStream
        fields = ("id", "tenant", "owner", *columns.SHARED_STREAM)


class SharedStreams(Resource):
    segment = "shared-streams"
    model = SharedStream
    serializer_class = SharedStreamRow
    filters = {"state": "state"}

    def rows(self) -> Any:
        return SharedStream.objects.select_related("tenant", "owner")

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        return Response(self.describe(row) | details_of(row))

    @verb()
    def close(self, row: SharedStream, values: dict[str, Any], operator: Operator) -> None:
        """Close the shared stream for good."""
        acts.close(row.pk, operator)

    @verb()
    def pause(self, row: SharedStream, values: dict[str, Any], operator: Operator) -> None:
        """Pause the shared stream, until a participant or an operator resumes it."""
        acts.pause(row.pk, operator)

    @verb()
    def resume(self, row: SharedStream, values: dict[str, Any], operator: Operator) -> None:
        """Resume the shared stream, so that its participants may send again."""
        acts.resume(row.pk, operator)
