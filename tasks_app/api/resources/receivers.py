"""Receivers of webhooks: their answers to the handshake, given and forgotten by operators."""

from typing import Any

from rest_framework import serializers

from tasks_app import webhooks
from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import verb
from tasks_app.models import Receiver
from tasks_app.operators.audit import Operator


class ReceiverRow(Row):
    principal = serializers.CharField(source="owner.name", help_text="The owner of its webhooks.")
    tenant = serializers.CharField(source="owner.tenant.name")

    class Meta:
        model = Receiver
        fields = ("id", "site", "principal", "tenant", "agreed_at", "asked_at", "expires_at", "problem")


class Receivers(Resource):
    segment = "receivers"
    model = Receiver
    moment = "asked_at"
    serializer_class = ReceiverRow

    def rows(self) -> Any:
        return Receiver.objects.select_related("owner__tenant")

    @verb()
    def agree(self, row: Receiver, values: dict[str, Any], operator: Operator) -> None:
        """Agree for the receiver, and send what waits for it."""
        webhooks.agree(str(row.pk), operator)

    @verb()
    def forget(self, row: Receiver, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Forget the answer of the receiver, so that it is asked before the next delivery."""
        id = row.pk
        webhooks.forget(str(row.pk), operator)
        return {"id": id, "done": "forget"}
