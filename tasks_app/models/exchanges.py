"""The tables of calls and their answers. Only the room exchanges writes them."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from tasks_app.models.callers import Principal, Tenant

LARGE_REQUEST = 4_096
"""Bytes of a request from which on its record counts towards the quota of its caller."""


class Exchange(models.Model):
    """One call and its answer. Ids begin with the time, so the order of ids is that of the calls."""

    OUTCOMES: ClassVar = ("result", "error", "stream", "notified", "refused", "left", "broken")
    DOORS: ClassVar = ("http", "rest", "link", "websocket", "slack", "zone", "queue", "in-process")

    id = models.CharField(max_length=36, primary_key=True)
    request_id = models.CharField(
        max_length=128,
        default="",
        help_text="The id of the HTTP call, which the members of a batch share; empty if it is the exchange's own id.",
    )
    rpc_id = models.CharField(max_length=255, null=True)
    rpc_id_type = models.CharField(max_length=8, help_text="string, number, null, or absent.")
    dialect = models.CharField(max_length=16, default="")
    version = models.CharField(max_length=32, default="", help_text="The value of A2A-Version in the call.")
    door = models.CharField(max_length=16)
    envelope = models.CharField(
        max_length=16, null=True, help_text="The envelope of the call and its answer; null: it follows from the door."
    )
    method = models.CharField(max_length=64, default="")
    caller = models.ForeignKey(
        Principal, models.SET_NULL, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    tenant = models.ForeignKey(
        Tenant, models.SET_NULL, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    task_id = models.CharField(max_length=36, null=True)
    context_id = models.CharField(max_length=255, null=True)
    peer = models.CharField(max_length=45, null=True, help_text="The address that the call came from.")
    trace = models.CharField(max_length=64, default="", help_text="The trace id of a traceparent header.")
    outcome = models.CharField(
        max_length=16, default="", help_text=f"{', '.join(OUTCOMES)}; empty: no answer recorded."
    )
    code = models.IntegerField(null=True)
    http_status = models.PositiveSmallIntegerField(null=True)
    created_at = models.DateTimeField()
    duration_us = models.PositiveBigIntegerField(null=True)
    request_bytes = models.PositiveIntegerField(default=0)
    response_bytes = models.PositiveIntegerField(default=0)
    frames = models.PositiveIntegerField(default=0, help_text="Events sent on a stream.")
    first_seq = models.PositiveIntegerField(null=True, help_text="The task's sequence number the answer began with.")
    last_seq = models.PositiveIntegerField(null=True, help_text="The task's sequence number the answer ended with.")

    tenant_path: ClassVar = "tenant"

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["rpc_id", "id"], name="exchange_rpc", condition=Q(rpc_id__isnull=False)),
            models.Index(fields=["request_id", "id"], name="exchange_request", condition=~Q(request_id="")),
            models.Index(fields=["task_id", "id"], name="exchange_task", condition=Q(task_id__isnull=False)),
            models.Index(fields=["outcome", "id"], name="exchange_outcome", condition=~Q(outcome="result")),
            models.Index(fields=["caller", "id"], name="exchange_large", condition=Q(request_bytes__gte=LARGE_REQUEST)),
        ]

    def __str__(self) -> str:
        return self.id


class ExchangeBody(models.Model):
    """The redacted bodies of a call, in a table of their own so that lists never load them."""

    exchange = models.OneToOneField(
        Exchange, models.CASCADE, primary_key=True, db_constraint=False, related_name="body"
    )
    request = models.TextField(default="")
    response = models.TextField(default="", help_text="Empty when it can be derived from the log.")

    def __str__(self) -> str:
        return self.exchange_id
