"""The table of permissions."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from tasks_app.models.callers import Principal, Tenant

TWICE = "There is a permission for this pattern already: remove it first."


class Permission(models.Model):
    """A rule that allows or denies names to a principal or a tenant: agents, skills, phases, operations or namespaces.

    Only operators/permissions.py writes rows: it stores them beside the principal or the tenant as well.
    """

    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="permissions")
    principal = models.ForeignKey(
        Principal,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="permissions",
        help_text="The principal of the tenant; null for all of them.",
    )
    allows = models.BooleanField(help_text="Whether the rule allows the names or denies them.")
    kind = models.CharField(max_length=16, help_text="agent, skill, phase or operation.")
    pattern = models.CharField(max_length=128, help_text="A name, or the beginning of names and an asterisk.")
    created_at = models.DateTimeField(auto_now_add=True)

    tenant_path: ClassVar = "tenant"

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["principal", "kind", "pattern"],
                condition=Q(principal__isnull=False),
                name="permission_of_principal",
                violation_error_message=TWICE,
            ),
            models.UniqueConstraint(
                fields=["tenant", "kind", "pattern"],
                condition=Q(principal=None),
                name="permission_of_tenant",
                violation_error_message=TWICE,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.effect} {self.kind} {self.pattern}"

    @property
    def effect(self) -> str:
        """The effect on the names: allow or deny."""
        return "allow" if self.allows else "deny"
