"""Rate limits of callers and tenants: set and removed here."""

from typing import Any

from rest_framework import serializers

from tasks_app.api.problems import check_done, refuse_body
from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import Body, verb
from tasks_app.models import RateLimit
from tasks_app.operators import rate_limits
from tasks_app.operators.audit import Operator


class LimitRow(Row):
    tenant = serializers.CharField(source="tenant.name")
    principal = serializers.CharField(source="principal.name", default=None)

    class Meta:
        model = RateLimit
        fields = ("id", "tenant", "principal", "per_minute", "burst", "changed_at")


class NewLimit(Body):
    tenant = serializers.CharField(max_length=64, default="default", help_text="The tenant.")
    principal = serializers.CharField(
        max_length=64, allow_null=True, default=None, help_text="A principal of it; null: the tenant as a whole."
    )
    per_minute = serializers.IntegerField(
        min_value=0, max_value=rate_limits.MOST, help_text="Units of cost in a minute; 0: no limit."
    )
    burst = serializers.IntegerField(
        min_value=1,
        max_value=rate_limits.MOST,
        allow_null=True,
        default=None,
        help_text="Units at once; null: those of a minute.",
    )


class Limits(Resource):
    segment = "limits"
    model = RateLimit
    moment = "changed_at"
    serializer_class = LimitRow
    filters = {"tenant": "tenant__name", "principal": "principal__name"}

    def rows(self) -> Any:
        return RateLimit.objects.select_related("tenant", "principal")

    @verb(permission="add", body=NewLimit, one=False)
    def create(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Set the limit of a principal, or of a tenant as a whole, in place of the one that there is."""
        self.check_tenant(values["tenant"])
        try:
            return self.describe(rate_limits.set_limit(operator, **values))
        except ValueError as error:
            raise refuse_body(error) from None

    @verb()
    def remove(self, row: RateLimit, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Remove the limit, so that the settings apply again."""
        described = self.describe(row)
        check_done(rate_limits.remove_limit(row, operator), "limit", "removed already")
        return described
