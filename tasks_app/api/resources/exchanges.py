"""Exchanges: found by any id, and each call shown next to its answer. Read only."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.response import Response

from a2a import languages
from tasks_app.api.resource import Resource, Row
from tasks_app.exchanges import responses
from tasks_app.models import Exchange, ExchangeBody
from tasks_app.operators import lookup
from tasks_app.operators.damage import BROKEN
from tasks_app.webhooks import with_files


class ExchangeRow(Row):
    caller = serializers.CharField(source="caller.name", default=None)
    tenant = serializers.CharField(source="tenant.name", default=None)

    class Meta:
        model = Exchange
        fields = tuple(field.name for field in Exchange._meta.concrete_fields)


class Exchanges(Resource):
    segment = "exchanges"
    model = Exchange
    serializer_class = ExchangeRow
    filters = {"outcome": "outcome", "task_id": "task_id"}
    bounded = {"status": "http_status"} | {name: name for name in ("method", "door", "dialect", "caller", "peer")}
    few = {
        "outcome": (*Exchange.OUTCOMES, lookup.NONE, ""),  # Empty: no answer is recorded.
        "door": Exchange.DOORS,
        "dialect": (*sorted(languages.ALL.by_name), lookup.NONE, ""),  # Empty: the call was refused before it was read.
    }

    def rows(self) -> Any:
        return Exchange.objects.select_related("caller", "tenant")

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        return (*super().parameters(), "find")

    def select(self, rows: QuerySet[Any], values: dict[str, str]) -> QuerySet[Any]:
        # `find` takes the id of an exchange, request, call or task, or the reference of a failure.
        if (text := values.pop("find", None)) is not None:
            rows = lookup.find_exchanges(text, rows)
        if (caller := values.pop("caller", None)) is not None:
            rows = lookup.owned_by(rows, caller, "caller_id")
        return super().select(rows, lookup.read_none(values))

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        body = ExchangeBody.objects.filter(pk=row.pk).first()
        try:
            response = with_files(responses.response_text(row)) if row.outcome else ""
        except BROKEN:
            response = ""
        return Response(self.describe(row) | {"request": body.request if body else "", "response": response})
