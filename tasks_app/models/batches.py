"""The tables of batches. Only tasks_app/batches writes them; the task of a batch is written by the event log alone."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from tasks_app.models.callers import Principal, Tenant


class Batch(models.Model):
    """One operation that is done to many tasks. Its state is that of its own task, which has its id."""

    id = models.CharField(max_length=36, primary_key=True, help_text="The id of its task.")
    tenant = models.ForeignKey(Tenant, models.PROTECT, db_index=False, related_name="+")
    owner = models.ForeignKey(Principal, models.CASCADE, db_index=False, related_name="+")
    operation = models.CharField(max_length=128, help_text="The agent or the skill.")
    agent = models.CharField(max_length=64, help_text="The agent of its items.")
    address = models.CharField(
        max_length=64, null=True, help_text="The agent of the address where it began; null: that of the whole server."
    )
    scopes = models.TextField(help_text="The scopes of the call that began it, separated by spaces.")
    size = models.PositiveIntegerField(help_text="Number of its items.")
    max_concurrent = models.PositiveIntegerField()
    batch_size = models.PositiveIntegerField()
    optimization = models.CharField(max_length=16)
    cursor = models.PositiveIntegerField(default=0, db_default=0, help_text="Items whose results its task has.")
    due_at = models.DateTimeField(null=True, help_text="When any process may go on with it; null: it is over.")
    created_at = models.DateTimeField()

    tenant_path: ClassVar = "tenant"
    agent_path: ClassVar = "agent"

    class Meta:
        verbose_name_plural = "batches"
        indexes: ClassVar = [
            models.Index(fields=["due_at"], name="batch_due", condition=Q(due_at__isnull=False)),
            models.Index(fields=["owner"], name="batch_open_by_owner", condition=Q(due_at__isnull=False)),
            # Lists of operators, the newest first: of an owner, or within the tenants that an operator reaches.
            models.Index(fields=["owner", "-id"], name="batch_by_owner"),
            models.Index(fields=["tenant", "-id"], name="batch_by_tenant"),
        ]

    def __str__(self) -> str:
        return self.id


class BatchItem(models.Model):
    """One item of a batch: what it is about, and the task that it became."""

    pk = models.CompositePrimaryKey("batch_id", "place")
    batch = models.ForeignKey(Batch, models.CASCADE, db_index=False, related_name="items")
    place = models.PositiveIntegerField(help_text="Its place in the batch, from 0.")
    about = models.CharField(max_length=64, null=True, help_text="The task that the operation is done to, if any.")
    message = models.TextField(null=True, help_text="The A2A 1.0 JSON of its message, if the call had one.")
    task_id = models.CharField(max_length=36, null=True, help_text="The task that it became.")
    state = models.CharField(max_length=16, default="", db_default="", help_text="How it ended; empty before.")
    error = models.TextField(null=True, help_text="Why it became no task.")

    tenant_path: ClassVar = "batch__tenant"
    agent_path: ClassVar = "batch__agent"

    def __str__(self) -> str:
        return f"{self.batch_id}/{self.place}"
