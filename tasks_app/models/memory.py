"""The tables of the memory: the entries of each owner, and the room that they take.

Only tasks_app/memory writes them.
"""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from tasks_app.models.callers import Principal, Tenant


class MemoryEntry(models.Model):
    """A JSON value of an owner under a namespace and a key."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, db_index=False, related_name="+")
    owner = models.ForeignKey(Principal, models.CASCADE, db_index=False, related_name="+")
    namespace = models.CharField(max_length=128)
    key = models.CharField(max_length=255)
    data = models.TextField(help_text="The value as JSON.")
    words = models.TextField(help_text="The key and the texts in the value, in lower case, for searches.")
    size = models.PositiveIntegerField(help_text="Bytes of the data.")
    version = models.PositiveBigIntegerField(default=1, help_text="The number of the write that stored it.")
    author = models.CharField(max_length=64, help_text="The account or the agent that wrote it last.")
    task_id = models.CharField(max_length=36, null=True, help_text="The task whose agent wrote it last, if one did.")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, help_text="When it is gone; null: never.")

    tenant_path: ClassVar = "tenant"

    class Meta:
        verbose_name = "memory entry"
        verbose_name_plural = "memory entries"
        constraints: ClassVar = [models.UniqueConstraint(fields=["owner", "namespace", "key"], name="memory_key")]
        indexes: ClassVar = [
            models.Index(fields=["expires_at"], name="memory_expiry", condition=Q(expires_at__isnull=False)),
            # Lists of operators, the newest first: of a key, a namespace, or the tenants that an operator reaches.
            models.Index(fields=["key", "-id"], name="memory_by_key"),
            models.Index(fields=["namespace", "-id"], name="memory_by_namespace"),
            models.Index(fields=["tenant", "-id"], name="memory_by_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.key}"


class MemoryUse(models.Model):
    """The room that the entries of one owner take. Each write of the owner locks the row, so the sums are exact."""

    owner = models.OneToOneField(Principal, models.CASCADE, primary_key=True, related_name="+")
    entries = models.PositiveBigIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes of the data of all entries.")

    tenant_path: ClassVar = "owner__tenant"

    def __str__(self) -> str:
        return f"owner {self.owner_id}"
