"""Principals, read only. Each is created with its first key, service account, OAuth client or Slack workspace."""

from typing import Any

from rest_framework import serializers

from tasks_app.api.resource import Resource, Row
from tasks_app.models import Principal


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
