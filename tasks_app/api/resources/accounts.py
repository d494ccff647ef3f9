"""Service accounts of tokens and certificates."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from tasks_app.api.problems import check_done, refuse_body, refuse_by
from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import Body, verb
from tasks_app.models import ServiceAccount
from tasks_app.operators import accounts
from tasks_app.operators.audit import Operator
from tasks_app.operators.refusals import sentence_of


class AccountRow(Row):
    principal = serializers.CharField(source="principal.name")
    tenant = serializers.CharField(source="principal.tenant.name")

    class Meta:
        model = ServiceAccount
        fields = (
            "id",
            "issuer",
            "subject",
            "principal",
            "tenant",
            "scopes",
            "language",
            "not_before",
            "created_at",
            "disabled_at",
        )


class NewAccount(Body):
    issuer = serializers.CharField(max_length=255, help_text="The `iss` of its tokens, or `certificate`.")
    subject = serializers.CharField(max_length=255, help_text="The `sub` of its tokens, or the name of a certificate.")
    principal = serializers.CharField(max_length=64, help_text="The principal of its calls; made if it is new.")
    tenant = serializers.CharField(max_length=64, default="default", help_text="The tenant of the principal.")
    scopes = serializers.CharField(max_length=255, default="*", help_text="The most scopes, separated by spaces.")
    language = serializers.CharField(max_length=32, allow_null=True, default=None, help_text="As of an API key.")


class ChangedAccount(Body):
    scopes = serializers.CharField(max_length=255, help_text="The most scopes, separated by spaces.")


class NotBefore(Body):
    time = serializers.DateTimeField(
        allow_null=True, default=None, help_text="The earliest time of issue that is accepted; null: now."
    )


class Accounts(Resource):
    segment = "accounts"
    model = ServiceAccount
    serializer_class = AccountRow
    filters = {"subject": "subject", "principal": "principal__name", "tenant": "principal__tenant__name"}

    def rows(self) -> QuerySet[ServiceAccount]:
        return ServiceAccount.objects.select_related("principal__tenant")

    @verb(permission="add", body=NewAccount, one=False)
    def create(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Register the subject of tokens, or of a certificate, as an account."""
        self.check_tenant(values["tenant"])
        self.check_scopes(values["scopes"])
        try:
            if not accounts.may_register(self.request.user, values["issuer"]):
                raise PermissionDenied(f"{accounts.NOT_YOURS}.")
            return self.describe(accounts.add(values.pop("issuer"), values.pop("subject"), operator, **values))
        except ImproperlyConfigured as error:
            raise ValidationError(sentence_of(error)) from None
        except ValueError as error:
            raise refuse_body(error) from None

    @verb(body=ChangedAccount)
    def change(self, row: ServiceAccount, values: dict[str, Any], operator: Operator) -> None:
        """Set the most scopes of the account, in place of those from before."""
        self.check_scopes(values["scopes"])
        check_done(accounts.change(row, operator, values["scopes"]), "account", "limited to these scopes already")

    @verb()
    def disable(self, row: ServiceAccount, values: dict[str, Any], operator: Operator) -> None:
        """Refuse the account until it is enabled."""
        check_done(accounts.disable(row, operator), "account", "disabled already")

    @verb()
    def enable(self, row: ServiceAccount, values: dict[str, Any], operator: Operator) -> None:
        """Accept the account again."""
        self.check_scopes(row.scopes)
        check_done(accounts.enable(row, operator), "account", "not disabled")

    @verb(body=NotBefore)
    def not_before(self, row: ServiceAccount, values: dict[str, Any], operator: Operator) -> None:
        """Refuse all tokens of the account that were issued before a time, by default now."""
        try:
            is_new = accounts.set_not_before(row, operator, values["time"])
        except ValueError as error:
            raise refuse_by(error) from None
        check_done(is_new, "account", "limited to tokens of an equal or later time already")
