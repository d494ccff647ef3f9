"""Clients of our own OAuth server. A secret is in the answer that makes it, and nowhere else."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from tasks_app.api.problems import Refused, check_done, refuse_body, refuse_by
from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import Body, verb
from tasks_app.models import OAuthClient
from tasks_app.models.clients import CLIENT_CREDENTIALS
from tasks_app.oauth import clients
from tasks_app.operators.audit import Operator
from tasks_app.operators.texts import LONGEST_URL


class ClientRow(Row):
    principal = serializers.CharField(source="principal.name")
    tenant = serializers.CharField(source="principal.tenant.name")
    grant = serializers.CharField(source="authorization_grant_type")
    type = serializers.CharField(source="client_type")
    redirect_uris = serializers.SerializerMethodField()
    former_secret_until = serializers.DateTimeField(source="former_until")

    class Meta:
        model = OAuthClient
        fields = (
            "id",
            "name",
            "client_id",
            "principal",
            "tenant",
            "scopes",
            "grant",
            "type",
            "redirect_uris",
            "former_secret_until",
            "created_at",
            "disabled_at",
            "revoked_at",
        )

    def get_redirect_uris(self, row: OAuthClient) -> list[str]:
        return row.redirect_uris.split()


class NewClient(Body):
    name = serializers.CharField(max_length=64, help_text="The name that operators see when they approve it.")
    principal = serializers.CharField(max_length=64, help_text="The principal of its tokens; made if it is new.")
    tenant = serializers.CharField(max_length=64, default="default", help_text="The tenant of the principal.")
    scopes = serializers.CharField(max_length=255, help_text="The most scopes of its tokens, separated by spaces.")
    grant = serializers.CharField(max_length=32, default=CLIENT_CREDENTIALS)
    redirect_uris = serializers.ListField(
        child=serializers.CharField(max_length=LONGEST_URL),
        default=list,
        max_length=20,
        help_text="For authorization codes.",
    )
    public = serializers.BooleanField(default=False, help_text="True for a program that can keep no secret.")


class ChangedClient(Body):
    scopes = serializers.CharField(
        required=False, max_length=255, help_text="The most scopes of its tokens, separated by spaces."
    )
    redirect_uris = serializers.ListField(
        required=False,
        child=serializers.CharField(max_length=LONGEST_URL),
        max_length=20,
        help_text="In place of the former.",
    )


class Overlap(Body):
    overlap_hours = serializers.FloatField(
        default=24, min_value=0, max_value=8760, help_text="Hours for which the former secret stays valid."
    )


class Clients(Resource):
    segment = "clients"
    model = OAuthClient
    serializer_class = ClientRow
    filters = {"client_id": "client_id", "principal": "principal__name", "tenant": "principal__tenant__name"}

    def rows(self) -> QuerySet[OAuthClient]:
        return OAuthClient.objects.select_related("principal__tenant")

    @verb(permission="add", body=NewClient, one=False, gives_rights=True)
    def create(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Add a client. The answer has its secret, and no later one does."""
        _check_on()
        self.check_tenant(values["tenant"])
        try:
            client, secret = clients.add(clients.NewClient(**values), operator)
        except ValueError as error:
            raise refuse_body(error) from None
        return self.describe(client) | ({"client_secret": secret} if secret else {})

    @verb(body=ChangedClient, gives_rights=True)
    def change(self, row: OAuthClient, values: dict[str, Any], operator: Operator) -> None:
        """Set the scopes or the redirect URIs of the client: those that are given."""
        if not values:
            raise ValidationError("Give scopes, redirect_uris, or both.")
        try:
            check_done(clients.change(row, operator, **values), "client", "set to these values already")
        except ValueError as error:
            raise refuse_body(error) from None

    @verb(body=Overlap, gives_rights=True)
    def rotate(self, row: OAuthClient, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Give the client a new secret, which only this answer has."""
        _check_on()
        try:
            secret = clients.rotate(row, operator, timedelta(hours=values["overlap_hours"]))
        except ValueError as error:
            raise refuse_by(error) from None
        return self.describe(row) | {"client_secret": secret}

    @verb()
    def disable(self, row: OAuthClient, values: dict[str, Any], operator: Operator) -> None:
        """Refuse the client and its tokens until it is enabled."""
        check_done(clients.disable(row, operator), "client", "disabled or revoked already")

    @verb(gives_rights=True)
    def enable(self, row: OAuthClient, values: dict[str, Any], operator: Operator) -> None:
        """Accept the client and its tokens again."""
        check_done(clients.enable(row, operator), "client", "not disabled, or it is revoked")

    @verb()
    def revoke(self, row: OAuthClient, values: dict[str, Any], operator: Operator) -> None:
        """Refuse the client for ever, and delete its tokens."""
        check_done(clients.revoke(row, operator), "client", "revoked already")


def _check_on() -> None:
    if not settings.A2A_OAUTH:
        raise Refused("The OAuth server is off, so it has no clients: set A2A_OAUTH=true.")
