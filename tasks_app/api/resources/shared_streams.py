"""Shared streams: found by state, shown with their participants and chunks, closed, paused and resumed."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import verb
from tasks_app.models import SharedStream
from tasks_app.operations import shared_stream_acts as acts
from tasks_app.operators import columns
from tasks_app.operators.audit import Operator
from tasks_app.shared_streams.details import MOST, details_of

MOST_SEQ = 2**31 - 1
LONGEST = 10
"""Digits of a number that are read."""


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
    page_parameters = ("before", "limit")

    def rows(self) -> Any:
        return SharedStream.objects.select_related("tenant", "owner")

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        page = _read_page(request)
        details = self.describe(row) | details_of(row, **page)
        place = request.build_absolute_uri()
        return Response(
            details | {"next": details["before"] and replace_query_param(place, "before", details["before"])}
        )

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


def _read_page(request: Any) -> dict[str, int]:
    """Return the query parameters of a page of chunks. Raises ValidationError."""
    page = {}
    for name, text in request.query_params.items():
        most = {"before": MOST_SEQ, "limit": MOST}.get(name)
        if most is None:
            raise ValidationError({name: "is not a parameter of a shared stream; it has before, limit"})
        if not (text.isascii() and text.isdigit() and len(text) <= LONGEST and 1 <= int(text) <= most):
            raise ValidationError({name: f"must be a whole number from 1 to {most}"})
        page[name] = int(text)
    return page
