"""Tenants, read only. Each is created with its first principal."""

from tasks_app.api.resource import Resource, Row
from tasks_app.models import Tenant


class TenantRow(Row):
    class Meta:
        model = Tenant
        fields = ("id", "name", "created_at")


class Tenants(Resource):
    segment = "tenants"
    model = Tenant
    serializer_class = TenantRow
    filters = {"name": "name"}
