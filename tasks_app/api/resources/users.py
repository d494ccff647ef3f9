"""Accounts of operators: made, enabled, disabled, and given roles, a reach and passwords."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError

from tasks_app.api.problems import check_done
from tasks_app.api.resource import Resource, Row, check_permission
from tasks_app.api.verbs import Body, verb
from tasks_app.operators import second_factor, users
from tasks_app.operators.audit import Operator
from tasks_app.operators.reach import reach_of
from tasks_app.operators.roles import ROLES
from tasks_app.operators.texts import LONGEST_EMAIL

FLAGS = ("is_active", "is_staff", "is_superuser")
"""The columns that are true or false."""


class UserRows(serializers.ListSerializer[Any]):
    """The rows of a list, described together: what belongs to them is read in one query of each table."""

    def to_representation(self, data: Any) -> list[dict[str, Any]]:
        return users.describe_users(data)


class UserRow(Row):
    class Meta:
        model = User
        list_serializer_class = UserRows
        fields = ("id", "username", *users.DETAILS, "is_active", "is_staff", "is_superuser", "last_login")

    def to_representation(self, instance: User) -> dict[str, Any]:
        return users.describe_user(instance)


class Roles(Body):
    roles = serializers.ListField(
        child=serializers.CharField(max_length=150),
        help_text=f"Roles: {', '.join(ROLES)}, and the groups that were made here.",
    )


class NewReach(Body):
    tenants = serializers.ListField(child=serializers.CharField(max_length=64), default=list)
    all_tenants = serializers.BooleanField(default=False, help_text="Every tenant, also those to come.")
    agents = serializers.ListField(
        child=serializers.CharField(max_length=64), default=list, help_text="Only tasks of these agents; empty: all."
    )


class Link(Body):
    principal = serializers.CharField(max_length=64, help_text="The principal, which must exist.")
    tenant = serializers.CharField(max_length=64, default="default", help_text="The tenant of the principal.")
    scopes = serializers.CharField(max_length=255, help_text="Separated by spaces; * is all.")


class Details(Body):
    email = serializers.EmailField(required=False, allow_blank=True, max_length=LONGEST_EMAIL)
    first_name = serializers.CharField(required=False, allow_blank=True, max_length=150)
    last_name = serializers.CharField(required=False, allow_blank=True, max_length=150)


class NewUser(NewReach):
    username = serializers.CharField(max_length=150)
    email = serializers.EmailField(default="", allow_blank=True, max_length=LONGEST_EMAIL)
    roles = Roles().fields["roles"]


class Users(Resource):
    segment = "users"
    model = User
    moment = "date_joined"
    serializer_class = UserRow
    filters = {"username": "username"} | {name: name for name in FLAGS}
    few = dict.fromkeys(FLAGS, ("true", "false"))

    def select(self, rows: QuerySet[Any], values: dict[str, str]) -> QuerySet[Any]:
        flags = {name: values.pop(name) == "true" for name in FLAGS if name in values}
        return super().select(rows.filter(**flags), values)

    def get_object(self) -> User:
        user: User = super().get_object()
        if self.action != "retrieve" and user.is_superuser and not self.request.user.is_superuser:
            raise PermissionDenied(f"{user.username} is a superuser: only a superuser or a command changes them.")
        return user

    @verb(permission="add", body=NewUser, one=False, gives_rights=True)
    def create(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Make an operator with a random password, which is in the answer and in no later one."""
        check_permission(self.request.user, "auth.change_user")  # It gives roles, as `role` does.
        if not reach_of(self.request.user).is_whole:
            raise PermissionDenied("Operators of some tenants make no others: ask one who sees every tenant.")
        name, email, roles = (values.pop(name) for name in ("username", "email", "roles"))
        user, password = users.make_user(operator, name, roles, users.NamedReach(**values), email)
        return self.describe(user) | {"password": password}

    @verb(gives_rights=True)
    def enable(self, row: User, values: dict[str, Any], operator: Operator) -> None:
        """Let the operator log in."""
        check_done(users.set_active(operator, row, True), "user", "enabled already")

    @verb()
    def disable(self, row: User, values: dict[str, Any], operator: Operator) -> None:
        """End the sessions of the operator, revoke the tokens, and let them log in no more."""
        check_done(users.set_active(operator, row, False), "user", "disabled already")

    @verb(body=Roles, gives_rights=True)
    def role(self, row: User, values: dict[str, Any], operator: Operator) -> None:
        """Give the operator these roles in place of those from before."""
        users.set_roles(operator, row, values["roles"])

    @verb(body=NewReach, gives_rights=True)
    def reach(self, row: User, values: dict[str, Any], operator: Operator) -> None:
        """Let the operator see the rows of these tenants and agents in place of those from before."""
        if "tenants" not in self.request.data and not (values["all_tenants"] or values["agents"]):
            raise ValidationError("Give tenants, or all_tenants as true; an empty list of tenants takes all away.")
        users.set_reach(operator, row, users.NamedReach(**values))

    @verb(body=Details)
    def details(self, row: User, values: dict[str, Any], operator: Operator) -> None:
        """Set the email address, the first name or the last name of the operator: those that are given."""
        if not values:
            raise ValidationError(f"Give {', '.join(users.DETAILS)}, or some of them; an empty text removes one.")
        users.set_details(operator, row, values)

    @verb(body=Link, gives_rights=True)
    def link(self, row: User, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Let the user call in the name of a principal, from pages of this server."""
        self.check_tenant(values["tenant"])
        users.link_user(operator, row, **values)
        return self.describe(row) | values

    @verb()
    def unlink(self, row: User, values: dict[str, Any], operator: Operator) -> None:
        """Let the user call in the name of a principal no more."""
        users.unlink_user(operator, row)

    @verb(gives_rights=True)
    def reset_second_factor(self, row: User, values: dict[str, Any], operator: Operator) -> None:
        """Remove the device of the operator, who enrols another at the next login, and revoke the tokens."""
        second_factor.reset(row, operator)

    @verb(gives_rights=True)
    def password(self, row: User, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Give the operator a random password, which is in the answer and in no later one."""
        return {"id": row.pk, "password": users.reset_password(operator, row)}
