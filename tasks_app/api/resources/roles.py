"""Roles of operators with their permissions: those of `migrate`, and those that are made here."""

from typing import Any

from django.contrib.auth.models import Group
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied

from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import Body, verb
from tasks_app.operators import groups
from tasks_app.operators.audit import Operator
from tasks_app.operators.reach import reach_of


class RoleRow(Row):
    class Meta:
        model = Group
        fields = ("id", "name")

    def to_representation(self, instance: Group) -> dict[str, Any]:
        return groups.describe_role(instance)


class Permissions(Body):
    permissions = serializers.ListField(
        child=serializers.CharField(max_length=255), help_text="Names of permissions, such as tasks_app.view_task."
    )


class Name(Body):
    name = serializers.CharField(max_length=150)


class NewRole(Permissions):
    name = Name().fields["name"]


class Roles(Resource):
    segment = "roles"
    model = Group
    serializer_class = RoleRow
    filters = {"name": "name"}

    @verb(permission="add", body=NewRole, one=False, gives_rights=True)
    def create(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Make a role with these permissions, which operators have once it is given to them."""
        if not reach_of(self.request.user).is_whole:
            raise PermissionDenied("Operators of some tenants make no roles: ask one who sees every tenant.")
        return self.describe(groups.make_role(operator, values["name"], values["permissions"]))

    @verb(body=Permissions, gives_rights=True)
    def change(self, row: Group, values: dict[str, Any], operator: Operator) -> None:
        """Give the role these permissions in place of those from before."""
        groups.change_role(operator, row, values["permissions"])

    @verb(body=Name, gives_rights=True)  # Roles are given by their names.
    def rename(self, row: Group, values: dict[str, Any], operator: Operator) -> None:
        """Give the role another name; operators who have it keep it. The roles of `migrate` keep their names."""
        groups.rename_role(operator, row, values["name"])

    @verb(permission="delete")
    def remove(self, row: Group, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Remove the role, which operators that have it then lack. The roles of `migrate` stay."""
        described = self.describe(row)
        groups.remove_role(operator, row)
        return described
