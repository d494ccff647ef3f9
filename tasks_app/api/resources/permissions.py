"""Permissions of callers by agent, skill, phase and batch operation: set and removed."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from tasks_app.api.problems import Refused, refuse_body
from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import Body, verb
from tasks_app.callers.principals import EVERYONE
from tasks_app.callers.rules import KINDS
from tasks_app.models import Permission
from tasks_app.operators import permissions
from tasks_app.operators.audit import Operator
from tasks_app.operators.holders import find_holder


class PermissionRow(Row):
    principal = serializers.CharField(source="principal.name", default=None)
    tenant = serializers.CharField(source="tenant.name")
    effect = serializers.CharField()

    class Meta:
        model = Permission
        fields = ("id", "tenant", "principal", "effect", "kind", "pattern", "created_at")


class NewPermission(Body):
    tenant = serializers.CharField(max_length=64, default="default")
    principal = serializers.CharField(
        max_length=64, allow_null=True, help_text="A principal of the tenant; null or * for all of them."
    )
    effect = serializers.ChoiceField(choices=["allow", "deny"])
    kind = serializers.ChoiceField(choices=KINDS)
    pattern = serializers.CharField(max_length=128, help_text="A name, or the beginning of names and an asterisk.")


class Permissions(Resource):
    segment = "permissions"
    model = Permission
    serializer_class = PermissionRow
    filters = {"principal": "principal__name", "tenant": "tenant__name"}

    def rows(self) -> Any:
        return Permission.objects.select_related("principal", "tenant")

    def select(self, rows: QuerySet[Any], values: dict[str, str]) -> QuerySet[Any]:
        if values.get("principal") == EVERYONE:
            rows = rows.filter(principal=None)
            del values["principal"]
        return super().select(rows, values)

    @verb(permission="add", body=NewPermission, one=False, gives_rights=True)
    def create(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Allow or deny names. A permission for the same pattern is replaced."""
        self.check_tenant(values["tenant"])
        allows = values["effect"] == "allow"
        name = None if values["principal"] == EVERYONE else values["principal"]
        try:
            to = find_holder(values["tenant"], name)
            row = permissions.set_permission(to, values["kind"], values["pattern"], allows=allows, by=operator)
        except ValueError as error:
            raise refuse_body(error) from None
        return self.describe(row)

    @verb(permission="delete", gives_rights=True)
    def remove(self, row: Permission, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Remove the permission. Without any of its kind, all names of the kind are allowed."""
        answer = self.describe(row)
        if not permissions.remove_permission(row, operator):
            raise Refused("The permission is removed already.")
        return answer
