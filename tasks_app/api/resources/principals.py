"""Principals, read only. Each is created with its first key, service account, OAuth client or Slack workspace."""

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from tasks_app.api.resource import Resource, Row
from tasks_app.models import Principal
from tasks_app.operators.stored import amounts_of_principal


class PrincipalRow(Row):
    tenant = serializers.CharField(source="tenant.name")

    class Meta:
        model = Principal
        fields = ("id", "name", "tenant", "created_at")


class Principals(Resource):
    segment = "principals"
    model = Principal
    serializer_class = PrincipalRow
    filters = {"tenant": "tenant__name", "name": "name"}

    def rows(self) -> Any:
        return Principal.objects.select_related("tenant")

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        return Response(self.describe(row) | {"stored": amounts_of_principal(row)})
