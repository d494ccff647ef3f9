"""Webhooks: disabled and enabled, without their secrets."""

from typing import Any

from rest_framework import serializers

from tasks_app import webhooks
from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import verb
from tasks_app.models import Webhook
from tasks_app.operators import columns
from tasks_app.operators.audit import Operator
from tasks_app.sealing import site_of


class WebhookRow(Row):
    site = serializers.SerializerMethodField(help_text="The scheme and the host of its address.")
    language = serializers.CharField(source="language_name", help_text="The language of its deliveries.")
    events = serializers.ListField(source="notice_names", help_text="The kinds of changes that it hears of.")

    class Meta:
        model = Webhook
        fields = ("id", "task_id", "name", "version", "language", "events", "site", *columns.WEBHOOK)

    def get_site(self, row: Webhook) -> str:
        """Return the address without its path, which may contain a secret."""
        return site_of(row.url)


class Webhooks(Resource):
    segment = "webhooks"
    model = Webhook
    serializer_class = WebhookRow
    # key__id is the column key_id, compared as a number: one that is too large for it finds nothing, and is no fault.
    filters = {"task_id": "task_id", "host": "host", "key_id": "key__id"}
    bounded = {"state": "state", "caller_credential": "caller_credential"}

    @verb()
    def disable(self, row: Webhook, values: dict[str, Any], operator: Operator) -> None:
        """Disable the webhook and give up its waiting deliveries."""
        webhooks.disable(row.pk, operator)

    @verb()
    def enable(self, row: Webhook, values: dict[str, Any], operator: Operator) -> None:
        """Enable the webhook for events from now on."""
        webhooks.enable(row.pk, operator)

    @verb()
    def show_secret(self, row: Webhook, values: dict[str, Any], operator: Operator) -> dict[str, str]:
        """Return the secret that signs the deliveries of the webhook."""
        return {"id": row.pk, "secret": webhooks.secret_of(row.pk, operator)}
