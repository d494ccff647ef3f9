"""Deliveries to webhooks: shown with their tries, sent again, and given up."""

from typing import Any

from rest_framework.response import Response

from tasks_app import webhooks
from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import Ids, verb
from tasks_app.models import Delivery, DeliveryTry
from tasks_app.operators import columns
from tasks_app.operators.audit import Operator
from tasks_app.webhooks import Answer


class DeliveryRow(Row):
    class Meta:
        model = Delivery
        fields = columns.DELIVERY


class Deliveries(Resource):
    segment = "deliveries"
    model = Delivery
    serializer_class = DeliveryRow
    filters = {"state": "state", "task_id": "task_id", "webhook_id": "webhook_id"}

    def rows(self) -> Any:
        return Delivery.objects.defer("body")

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        tries = DeliveryTry.objects.filter(delivery_id=row.pk).order_by("id").values(*columns.DELIVERY_TRY)
        return Response(self.describe(row) | {"body": webhooks.readable_body(row), "log": list(tries)})

    @verb(body=Ids, one=False)
    def send_again(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Send deliveries again now, for each webhook in the order of events."""
        mine = self.split(values["ids"])
        return self.answer(values["ids"], webhooks.send_again(mine, operator) if mine else {})

    @verb(body=Ids, one=False)
    def give_up(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Give up waiting deliveries. Their webhooks go on with the next ones."""
        return self.answer(values["ids"], webhooks.one_by_one(webhooks.give_up)(self.split(values["ids"]), operator))

    def split(self, ids: list[str]) -> list[str]:
        """Return those of the ids whose rows the operator may see, in their order."""
        mine = set(self.get_queryset().filter(pk__in=[id for id in ids if "\0" not in id]).values_list("pk", flat=True))
        return [id for id in ids if id in mine]

    def answer(self, ids: list[str], answers: Any) -> dict[str, Any]:
        """Return the outcome for each id; a refusal for those that there are none of."""
        missing = {id: Answer(refusal=webhooks.no_delivery(id)) for id in ids}
        return {
            "results": [
                {"id": id, "refusal": answer.refusal, "note": answer.note} for id, answer in (missing | answers).items()
            ]
        }
