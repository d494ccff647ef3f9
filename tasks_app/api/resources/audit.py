"""The audit, read only: entries of calls that change something, and counts of refused calls; as JSON, or as lines."""

from typing import Any

import orjson
from django.db.models import Q, QuerySet
from rest_framework.renderers import BaseRenderer, JSONRenderer

from tasks_app.api.resource import Resource, Row
from tasks_app.audit.export import ENTRY, REFUSED
from tasks_app.models import AuditEntry, Exchange, RefusedCalls


class Lines(BaseRenderer):
    """Renders a page of a list as JSON lines. The header Link of the answer names the next page (RFC 8288)."""

    media_type = "application/x-ndjson"
    format = "ndjson"
    charset = None

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        """Return the rows of a page, or a single value, a line each."""
        if not isinstance(data, dict) or "results" not in data:
            return orjson.dumps(data, option=orjson.OPT_APPEND_NEWLINE)
        if (address := data["next"]) and renderer_context:
            renderer_context["response"]["Link"] = f'<{address}>; rel="next"'
        return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in data["results"])


class Exported(Resource):
    """The base of resources whose lists come as JSON lines, too."""

    def get_renderers(self) -> list[BaseRenderer]:
        return [JSONRenderer(), Lines()]

    def select(self, rows: QuerySet[Any], values: dict[str, str]) -> QuerySet[Any]:
        # Rows outlive their callers, so their own names are compared: with the tenant before it, as in acme/olga, or
        # without.
        if (caller := values.pop("caller", None)) is not None:
            tenant, _, name = caller.partition("/")
            rows = rows.filter(Q(caller=caller) | Q(tenant=tenant, caller=name))
        return super().select(rows, values)


class EntryRow(Row):
    class Meta:
        model = AuditEntry
        fields = ENTRY


class Entries(Exported):
    segment = "audit"
    model = AuditEntry
    serializer_class = EntryRow
    filters = {"task_id": "task_id", "caller_id": "caller_id", "credential": "credential", "peer": "peer"}
    bounded = {"method": "method", "outcome": "outcome", "caller": "caller"}
    few = {"outcome": Exchange.OUTCOMES}


class RefusedRow(Row):
    class Meta:
        model = RefusedCalls
        fields = REFUSED


class Refused(Exported):
    segment = "refused-calls"
    model = RefusedCalls
    moment = "hour"
    serializer_class = RefusedRow
    filters = {"credential": "credential", "caller": "caller", "reason": "reason"}
