"""Acts of operators, read only."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from tasks_app.api.resource import Resource, Row
from tasks_app.models import Act
from tasks_app.operators.audit import check_kind, check_verb
from tasks_app.operators.refusals import sentence_of


class JsonText(serializers.Field[Any, Any, Any, Any]):
    """A column of JSON as text, shown as JSON."""

    def to_representation(self, value: str) -> Any:
        """Return the value of the JSON."""
        import orjson

        return orjson.loads(value)


class ActRow(Row):
    before = JsonText()
    after = JsonText()
    tenant = serializers.CharField(source="tenant.name", default=None)

    class Meta:
        model = Act
        fields = (
            "id",
            "at",
            "operator",
            "door",
            "verb",
            "kind",
            "object_id",
            "name",
            "tenant",
            "before",
            "after",
            "reason",
            "peer",
            "trace",
        )


class Acts(Resource):
    segment = "acts"
    model = Act
    moment = "at"
    serializer_class = ActRow
    filters = {"operator": "operator", "verb": "verb", "kind": "kind", "object_id": "object_id"}

    def rows(self) -> Any:
        return Act.objects.select_related("tenant")

    def select(self, rows: QuerySet[Any], values: dict[str, str]) -> QuerySet[Any]:
        for name, check in (("kind", check_kind), ("verb", check_verb)):
            try:
                if name in values:
                    check(values[name], self.get_queryset())
            except ValueError as error:
                raise ValidationError({name: sentence_of(error)}) from None
        return super().select(rows, values)
