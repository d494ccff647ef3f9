"""Counts of refused calls of strangers, read only."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError

from tasks_app.api.resource import Resource, Row
from tasks_app.exchanges.refusals import OTHERS, UNKNOWN, address_of_search, is_address
from tasks_app.models import Refusals as Counts


class RefusalsRow(Row):
    class Meta:
        model = Counts
        fields = ("id", "minute", "address", "unauthenticated", "limited", "invalid", "recorded")


class Refusals(Resource):
    segment = "refusals"
    model = Counts
    moment = "minute"
    serializer_class = RefusalsRow
    filters = {"address": "address"}

    def select(self, rows: QuerySet[Any], values: dict[str, str]) -> QuerySet[Any]:
        for name, value in values.items():
            if not is_address(value):
                sentence = f"{value[:64]!r} is no IP address; {OTHERS} and {UNKNOWN} have rows, too."
                raise ValidationError({name: sentence})
        return super().select(rows, {name: address_of_search(value) for name, value in values.items()})
