"""The table of processes that run, or have ended recently."""

from typing import ClassVar

from django.db import models


class Process(models.Model):
    """A server or worker process as of its last sweep. Only upkeep/processes.py writes it."""

    name = models.CharField(max_length=64, primary_key=True, help_text="Machine, process id, and a random part.")
    role = models.CharField(max_length=16, help_text="web, worker, child of a worker, or operator.")
    version = models.CharField(max_length=32)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField(help_text="Its last sweep, by the database's clock.")
    ended_at = models.DateTimeField(null=True, help_text="The time when it ended in order.")
    steady_at = models.DateTimeField(null=True, help_text="The last sweep at which it trusted the clock to delete by.")
    clock_off = models.FloatField(
        default=0, db_default=0, help_text="Seconds by which its machine's clock is ahead of the database's."
    )
    troubles = models.TextField(default="[]", db_default="[]", help_text="JSON: the sentences of /readyz.")
    lost = models.PositiveIntegerField(default=0, db_default=0, help_text="Exchanges that could not be recorded.")
    lag = models.FloatField(null=True, help_text="Seconds by which deleting is behind, as this process measured it.")
    counters = models.TextField(null=True, help_text="JSON: the counters of a process that has no /metrics.")

    tenant_path: ClassVar = ""

    class Meta:
        verbose_name_plural = "processes"

    def __str__(self) -> str:
        return self.name
