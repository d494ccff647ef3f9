"""The table of rate limits. Only operators/rate_limits.py writes it."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from tasks_app.models.callers import Principal, Tenant


class RateLimit(models.Model):
    """The rate limit of one principal, or of all principals of a tenant together."""

    tenant_path: ClassVar = "tenant"

    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="rate_limits")
    principal = models.ForeignKey(
        Principal, models.CASCADE, null=True, related_name="rate_limits", help_text="Null: the tenant as a whole."
    )
    per_minute = models.PositiveIntegerField(help_text="Units of cost in a minute; 0: no limit.")
    burst = models.PositiveIntegerField(null=True, help_text="Units at once; null: those of a minute.")
    changed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["principal"], name="rate_limit_of_principal"),
            models.UniqueConstraint(fields=["tenant"], condition=Q(principal=None), name="rate_limit_of_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.principal} of {self.tenant}" if self.principal_id else f"tenant {self.tenant}"
