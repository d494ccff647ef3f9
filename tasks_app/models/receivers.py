"""The table of receivers of webhooks, which agree to deliveries before they get any."""

from datetime import datetime
from typing import ClassVar

from django.db import models

from tasks_app.models.callers import Principal


class Receiver(models.Model):
    """A site that webhooks of one owner lead to, and its answer to the handshake."""

    owner = models.ForeignKey(Principal, models.CASCADE, related_name="receivers")
    site = models.CharField(max_length=300, help_text="Scheme, host and port.")
    agreed_at = models.DateTimeField(null=True, help_text="When it agreed to deliveries; null: it has not agreed.")
    asked_at = models.DateTimeField(help_text="When it was asked the last time, or an operator agreed for it.")
    expires_at = models.DateTimeField(
        null=True, db_index=True, help_text="When its answer is forgotten; null: an operator agreed for it."
    )
    problem = models.CharField(max_length=255, default="", db_default="", help_text="Why it has not agreed.")

    tenant_path: ClassVar = "owner__tenant"

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["owner", "site"], name="receiver_of_owner")]

    def __str__(self) -> str:
        return self.site

    def agrees(self, now: datetime) -> bool:
        """Return whether it has agreed, and its answer still counts."""
        return self.agreed_at is not None and (self.expires_at is None or self.expires_at > now)
