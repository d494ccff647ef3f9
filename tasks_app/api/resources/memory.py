"""Entries of the memory: found by owner, namespace and key, shown with their value, removed."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.response import Response

from tasks_app.api.problems import check_done
from tasks_app.api.resource import OwnedRow, Resource
from tasks_app.api.verbs import verb
from tasks_app.models import MemoryEntry
from tasks_app.operations import memory_acts as acts
from tasks_app.operators import columns, lookup
from tasks_app.operators.audit import Operator


class MemoryRow(OwnedRow):
    class Meta:
        model = MemoryEntry
        fields = ("id", "tenant", "owner", *columns.MEMORY)


class Memory(Resource):
    segment = "memory"
    model = MemoryEntry
    moment = "expires_at"
    serializer_class = MemoryRow
    filters = {"namespace": "namespace", "key": "key"}

    def rows(self) -> Any:
        return MemoryEntry.objects.select_related("tenant", "owner")

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        return (*super().parameters(), "owner")

    def select(self, rows: QuerySet[Any], values: dict[str, str]) -> QuerySet[Any]:
        owner = values.pop("owner", None)
        return super().select(rows if owner is None else lookup.owned_by(rows, owner), values)

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        return Response(self.describe(row) | acts.details_of(row))

    @verb()
    def remove(self, row: MemoryEntry, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Remove the entry. Its owner and the owner's agents find it no more."""
        described = self.describe(row)
        check_done(acts.remove(row, operator), "memory entry", "removed already")
        return described
