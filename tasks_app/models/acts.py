"""The table of operators' acts. Only audit.py adds rows. They are never changed or deleted."""

from typing import Any, ClassVar, NoReturn

from django.db import models

from tasks_app.models.append_only import AppendOnly
from tasks_app.models.callers import Tenant


class Act(models.Model):
    """One act of an operator on one row. The names of both are text, so that the act outlives them."""

    at = models.DateTimeField()
    operator = models.CharField(max_length=150, help_text="The name, not the user: it stays when the user goes.")
    door = models.CharField(max_length=16, help_text="admin or command.")
    verb = models.CharField(max_length=64)
    kind = models.CharField(max_length=32, help_text="The kind of the row: task, delivery, webhook, API key, user.")
    object_id = models.CharField(max_length=64)
    name = models.CharField(max_length=255, help_text="The name of the row.")
    before = models.TextField(default="{}", db_default="{}", help_text="JSON: the changed values before the act.")
    after = models.TextField(default="{}", db_default="{}", help_text="JSON: the changed values after the act.")
    reason = models.CharField(max_length=255, default="", db_default="", help_text="The operator's reason.")
    peer = models.CharField(max_length=45, null=True, help_text="The address that the act came from; null: a command.")
    trace = models.CharField(max_length=64, null=True, help_text="The trace id of a traceparent header.")
    tenant = models.ForeignKey(
        Tenant,
        models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
        help_text="The tenant of the row; null: it has none, or the act is from before this column.",
    )

    tenant_path: ClassVar = "tenant"
    objects: ClassVar[models.Manager["Act"]] = AppendOnly.as_manager()

    class Meta:
        # There are no permissions to add, change or delete, because there are no forms for it.
        default_permissions = ("view",)
        indexes: ClassVar = [
            models.Index(fields=["kind", "object_id", "id"], name="act_of_row"),
            models.Index(fields=["operator", "id"], name="act_of_operator"),
        ]

    def __str__(self) -> str:
        return f"{self.operator}: {self.verb}, {self.kind} {self.object_id}"

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("acts of operators are not deleted")
