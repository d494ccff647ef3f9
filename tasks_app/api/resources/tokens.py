"""Tokens of operators: listed and revoked. A token cannot make another: that takes a session or a command."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError

from tasks_app.api.problems import Refused
from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import Body, verb
from tasks_app.models import OperatorToken
from tasks_app.operators import tokens
from tasks_app.operators.audit import Operator


class TokenRow(Row):
    user = serializers.CharField(source="user.username")

    class Meta:
        model = OperatorToken
        fields = ("id", "user", "name", "prefix", "created_at", "expires_at", "revoked_at", "used_at", "administers")


class NewToken(Body):
    name = serializers.CharField(max_length=64, help_text="The program that will use it.")
    days = serializers.IntegerField(
        min_value=1, max_value=tokens.MOST_DAYS, default=tokens.DAYS, help_text="Days until it expires."
    )
    administers = serializers.BooleanField(default=False, help_text="Whether it may do what gives rights to others.")


class Tokens(Resource):
    segment = "tokens"
    model = OperatorToken
    serializer_class = TokenRow

    def rows(self) -> Any:
        return OperatorToken.objects.select_related("user")

    @verb(permission="add", body=NewToken, one=False, gives_rights=True)
    def create(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Make a token of your own, from a session of the admin. The answer has it, and no later one does."""
        if self.request.auth is not None:
            raise PermissionDenied("A token cannot make another: log in to the admin, or use the command.")
        try:
            row, token = tokens.make_token(self.request.user, by=operator, **values)
        except tokens.TokenRefused as refusal:
            raise ValidationError(str(refusal)) from None
        return self.describe(row) | {"token": token}

    @verb()
    def revoke(self, row: OperatorToken, values: dict[str, Any], operator: Operator) -> None:
        """Revoke the token at once."""
        if not tokens.revoke(row, operator):
            raise Refused("The token is revoked already.")
