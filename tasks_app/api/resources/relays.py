"""Relays, with the state of their cards and the kind of their credentials. No answer has a secret."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from tasks_app.api.problems import refuse_body
from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import Body, verb
from tasks_app.models import Relay
from tasks_app.operators.audit import Operator
from tasks_app.operators.texts import LONGEST_URL
from tasks_app.relays import acts
from tasks_app.relays.credentials import LONGEST_SCOPES


class RelayRow(Row):
    url = serializers.SerializerMethodField(help_text="The scheme and host of its address.")
    credentials = serializers.SerializerMethodField(
        help_text="The kind: bearer, header, oauth, or unreadable; empty for none."
    )
    card_read_at = serializers.DateTimeField(source="read_at")
    card_due_at = serializers.DateTimeField(source="due_at")
    open_tasks = serializers.SerializerMethodField(help_text="Remote tasks that may go on.")

    class Meta:
        model = Relay
        fields = ("name", "url", "credentials", "card_read_at", "card_due_at", "problem", "open_tasks")

    def get_url(self, row: Relay) -> str:
        return acts.site_of(row)

    def get_credentials(self, row: Relay) -> str:
        return acts.kind_of(row)

    def get_open_tasks(self, row: Relay) -> int:
        return acts.count_open(row)


class NewCredentials(Body):
    secret = serializers.CharField(
        max_length=acts.LONGEST_SECRET, help_text="A bearer token, unless there is a header or a token URL."
    )
    header = serializers.CharField(
        max_length=128, default="", allow_blank=True, help_text="The header that has the secret, such as X-API-Key."
    )
    token_url = serializers.CharField(
        max_length=LONGEST_URL,
        default="",
        allow_blank=True,
        help_text="The address for tokens by the client credentials grant of OAuth 2; the secret is the client's.",
    )
    client_id = serializers.CharField(
        max_length=255, default="", allow_blank=True, help_text="The client id for the token URL."
    )
    token_scopes = serializers.CharField(
        max_length=LONGEST_SCOPES,
        default="",
        allow_blank=True,
        help_text="Scopes for the token URL, separated by spaces.",
    )


class Relays(Resource):
    segment = "relays"
    model = Relay
    serializer_class = RelayRow

    def rows(self) -> QuerySet[Relay]:
        return acts.rows()

    @verb(body=NewCredentials, gives_rights=True)
    def login(self, row: Relay, values: dict[str, Any], operator: Operator) -> None:
        """Store the credentials for the remote agent, sealed, in place of former ones."""
        try:
            acts.log_in(row, acts.Login(**values), operator)
        except ValueError as error:
            raise refuse_body(error) from None

    @verb()
    def logout(self, row: Relay, values: dict[str, Any], operator: Operator) -> None:
        """Delete the credentials for the remote agent."""
        acts.log_out(row, operator)
