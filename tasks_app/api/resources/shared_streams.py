"""Shared streams: found by state, shown with their participants and chunks, closed, paused and resumed."""

from typing import Any

from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from tasks_app.api.paging import read_numbers
from tasks_app.api.resource import OwnedRow, Resource
from tasks_app.api.verbs import verb
from tasks_app.models import SharedStream
from tasks_app.operations import shared_stream_acts as acts
from tasks_app.operators import columns
from tasks_app.operators.audit import Operator
from tasks_app.shared_streams.details import MOST, details_of
from tasks_app.webhooks import with_files

MOST_SEQ = 2**31 - 1


class SharedStreamRow(OwnedRow):
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
        page = read_numbers(request, {"before": MOST_SEQ, "limit": MOST}, "a shared stream")
        details = self.describe(row) | details_of(row, with_files, **page)
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
