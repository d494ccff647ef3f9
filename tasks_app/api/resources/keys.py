"""API keys of callers: made and revoked here. The key itself is in the answer that makes it, and nowhere else."""

from typing import Any

from rest_framework import serializers

from tasks_app.api.problems import Refused, refuse_body, refuse_by
from tasks_app.api.resource import Resource, Row, check_permission
from tasks_app.api.verbs import Body, verb
from tasks_app.models import ApiKey
from tasks_app.operators.audit import Operator
from tasks_app.operators.keys import MOST_OVERLAP, make_key, rotate_key


class KeyRow(Row):
    principal = serializers.CharField(source="principal.name")
    tenant = serializers.CharField(source="principal.tenant.name")

    class Meta:
        model = ApiKey
        fields = (
            "id",
            "name",
            "prefix",
            "principal",
            "tenant",
            "scopes",
            "language",
            "networks",
            "created_at",
            "expires_at",
            "revoked_at",
            "last_used_at",
        )


class NewKey(Body):
    principal = serializers.CharField(max_length=64, help_text="The owner of its tasks; made if it does not exist.")
    tenant = serializers.CharField(max_length=64, default="default", help_text="The tenant of the principal.")
    name = serializers.CharField(max_length=64, default="", help_text="A name to tell keys apart.")
    scopes = serializers.CharField(max_length=255, default="*", help_text="Separated by spaces; * is all.")
    language = serializers.CharField(max_length=32, allow_null=True, default=None)
    days = serializers.FloatField(allow_null=True, default=None, help_text="Days until it expires; null: never.")
    networks = serializers.CharField(
        default="", help_text="Networks that calls may come from, separated by spaces; any if it is absent."
    )


class Rotation(Body):
    overlap_hours = serializers.FloatField(
        default=24.0, min_value=0, max_value=MOST_OVERLAP, help_text="Hours for which the old key is valid."
    )


class Keys(Resource):
    segment = "keys"
    model = ApiKey
    serializer_class = KeyRow
    filters = {"principal": "principal__name", "tenant": "principal__tenant__name"}

    def rows(self) -> Any:
        return ApiKey.objects.select_related("principal__tenant")

    @verb(permission="add", body=NewKey, one=False)
    def create(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Make a key. The answer has it, and no later one does."""
        self.check_tenant(values["tenant"])
        self.check_scopes(values["scopes"])
        try:
            row, key = make_key(operator, **values)
        except ValueError as error:
            raise refuse_body(error) from None
        return self.describe(row) | {"key": key}

    @verb(body=Rotation)
    def rotate(self, row: ApiKey, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Make a key with the rights of this one, which expires after the overlap. The answer has the new key."""
        # It makes a key. An operator who may revoke keys need not have that right.
        check_permission(self.request.user, "tasks_app.add_apikey")
        self.check_scopes(row.scopes)
        try:
            new, key = rotate_key(operator, row, values["overlap_hours"])
        except ValueError as error:
            raise refuse_by(error) from None
        return self.describe(new) | {"key": key}

    @verb()
    def revoke(self, row: ApiKey, values: dict[str, Any], operator: Operator) -> None:
        """Revoke the key at once, and end the webhooks registered with it."""
        from tasks_app.webhooks.keys import revoke

        if revoke(row, operator) is None:
            raise Refused("The key is revoked already.")
