"""The usage history of zones: found by correlation id, channel and date. Read only."""

from typing import Any

from tasks_app.api.resource import OwnedRow, Resource
from tasks_app.models import Usage
from tasks_app.operators import columns


class UsageRow(OwnedRow):
    class Meta:
        model = Usage
        fields = ("id", "tenant", "owner", *columns.USAGE)


class UsageHistory(Resource):
    segment = "usage"
    model = Usage
    serializer_class = UsageRow
    filters = {"correlation_id": "correlation_id", "channel": "channel"}

    def rows(self) -> Any:
        return Usage.objects.select_related("tenant", "owner")
