"""The tables of the audit: entries of calls that change something, and counts of refused calls."""

from typing import Any, ClassVar, NoReturn

from django.db import models
from django.db.models import Q

from tasks_app.models.append_only import AppendOnly


class AuditEntry(models.Model):
    """One authenticated call that changes something. It has names besides ids, so that it outlives its caller.

    Ids begin with the time, so the order of ids is that of the calls. An entry written with a change has the id of its
    exchange.
    """

    id = models.CharField(max_length=36, primary_key=True)
    created_at = models.DateTimeField()
    caller_id = models.BigIntegerField(help_text="The id of the principal.")
    caller = models.CharField(max_length=64, help_text="The name of the principal.")
    tenant_id = models.BigIntegerField()
    tenant = models.CharField(max_length=64, help_text="The name of the tenant.")
    credential = models.CharField(max_length=64, help_text="The credential of the call, such as key:12.")
    peer = models.CharField(max_length=45, null=True, help_text="The address that the call came from.")
    door = models.CharField(max_length=16)
    language = models.CharField(max_length=16, default="", db_default="")
    method = models.CharField(max_length=64)
    task_id = models.CharField(max_length=36, null=True)
    webhook = models.CharField(max_length=255, default="", db_default="", help_text="The id that its owner chose.")
    outcome = models.CharField(max_length=16, help_text="result, notified, stream, error, or left.")
    code = models.IntegerField(null=True, help_text="The code of an error.")
    exchange_id = models.CharField(max_length=36)
    trace = models.CharField(max_length=64, default="", db_default="")

    tenant_path: ClassVar = "tenant_id"
    objects: ClassVar[models.Manager["AuditEntry"]] = AppendOnly.as_manager()

    class Meta:
        verbose_name = "audit entry"
        verbose_name_plural = "audit entries"
        default_permissions = ("view",)
        indexes: ClassVar = [
            models.Index(fields=["task_id", "id"], name="audit_task", condition=Q(task_id__isnull=False)),
            models.Index(fields=["caller_id", "id"], name="audit_caller"),
            models.Index(fields=["credential", "id"], name="audit_credential"),
            models.Index(fields=["peer", "id"], name="audit_peer", condition=Q(peer__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.caller}: {self.method}, {self.outcome}"

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("audit entries are not deleted, except by their age")


class RefusedCalls(models.Model):
    """The count of refused calls of one caller in one hour, for one reason."""

    hour = models.DateTimeField(help_text="The beginning of the hour.")
    caller_id = models.BigIntegerField(help_text="The id of the principal.")
    caller = models.CharField(max_length=64, help_text="The name of the principal.")
    tenant_id = models.BigIntegerField()
    tenant = models.CharField(max_length=64, help_text="The name of the tenant.")
    credential = models.CharField(max_length=64)
    reason = models.CharField(max_length=64, help_text="The reason in the error, such as MISSING_SCOPE.")
    count = models.PositiveBigIntegerField()
    last_at = models.DateTimeField()
    last_peer = models.CharField(max_length=45, null=True, help_text="The address of the newest of them.")

    tenant_path: ClassVar = "tenant_id"

    class Meta:
        verbose_name = verbose_name_plural = "refused calls"
        default_permissions = ("view",)
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["hour", "caller_id", "credential", "reason"], name="refused_calls_of"),
        ]

    def __str__(self) -> str:
        return f"{self.caller}: {self.count} x {self.reason}"
