"""The tables of zones: the usage by which operators find executions, and the secrets of runs while they last."""

from typing import ClassVar

from django.db import models

from tasks_app.models.callers import Principal, Tenant


class Usage(models.Model):
    """One call of `execute_task`, without its content: operators find it by correlation id, channel and date."""

    id = models.CharField(max_length=36, primary_key=True)
    created_at = models.DateTimeField()
    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="+", db_index=False)
    owner = models.ForeignKey(Principal, models.CASCADE, related_name="+", db_index=False)
    correlation_id = models.CharField(max_length=255)
    channel = models.CharField(max_length=255)
    task_id = models.CharField(max_length=36, default="", db_default="", help_text="Empty for a call that was refused.")
    outcome = models.CharField(max_length=64, help_text="`executed`, or the reason of the refusal.")
    skipped = models.TextField(default="", db_default="", help_text="The reasons for which attachments were skipped.")

    tenant_path: ClassVar = "tenant"

    class Meta:
        verbose_name = "usage"
        verbose_name_plural = "usage"
        indexes: ClassVar = [
            # Lists of operators, the newest first. An id begins with its time, so they end at any date, too.
            models.Index(fields=["correlation_id", "-id"], name="usage_by_correlation_id"),
            models.Index(fields=["channel", "-id"], name="usage_by_channel_id"),
            models.Index(fields=["tenant", "-id"], name="usage_by_tenant"),
            models.Index(fields=["created_at"], name="usage_by_time"),  # for the retention
        ]

    def __str__(self) -> str:
        return f"{self.correlation_id} in {self.channel}"


class RunSecret(models.Model):
    """The secrets of one message for its agent, sealed, until the agent is done or their time is over."""

    key = models.CharField(max_length=64, primary_key=True, help_text="A digest of the task and the message.")
    sealed = models.TextField()
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.key
