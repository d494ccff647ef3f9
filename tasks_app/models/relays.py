"""The tables of relays: what is stored of a remote agent, and of the tasks that were passed on to it."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from tasks_app.models.tasks import Task


class Relay(models.Model):
    """A remote agent of A2A_RELAYS, with its card as it was last read."""

    name = models.CharField(max_length=64, primary_key=True)
    url = models.TextField(default="", db_default="", help_text="The address that the card was read from.")
    card = models.TextField(default="", db_default="", help_text="The JSON of the card; empty before it was read.")
    read_at = models.DateTimeField(null=True, help_text="When the card was read.")
    due_at = models.DateTimeField(null=True, help_text="When it is read again.")
    problem = models.TextField(default="", db_default="", help_text="Why it could not be read the last time.")
    credentials = models.TextField(default="", db_default="", help_text="Sealed JSON.")

    def __str__(self) -> str:
        return self.name


class RelayedTask(models.Model):
    """The remote task behind a task of a relay."""

    task = models.OneToOneField(Task, models.CASCADE, primary_key=True, db_constraint=False, related_name="relayed")
    relay = models.CharField(max_length=64, default="", db_default="")
    remote_id = models.TextField(default="", db_default="", help_text="Empty before the remote agent has answered.")
    remote_context = models.TextField(default="", db_default="")
    message_id = models.CharField(
        max_length=36, default="", db_default="", help_text="The newest message that the remote agent has accepted."
    )
    sending = models.CharField(
        max_length=36, default="", db_default="", help_text="The newest message that was sent, accepted or not."
    )
    position = models.TextField(
        default="", db_default="", help_text="The id of the last remote event that is in the task's log."
    )
    is_open = models.BooleanField(
        default=False, db_default=False, help_text="Whether the remote task may go on, as far as is known here."
    )

    class Meta:
        indexes: ClassVar = [models.Index(fields=["task"], name="relayed_open", condition=Q(is_open=True))]

    def __str__(self) -> str:
        return f"{self.task_id} at {self.relay}"
