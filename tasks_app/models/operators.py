"""The tables of operators: the tokens of their programs, and the tenants and agents that they may see.

The people themselves, their passwords and roles, are in Django's own tables of users and groups.
"""

from django.conf import settings
from django.db import models

from tasks_app.models.callers import Tenant


class OperatorToken(models.Model):
    """A secret by which a program of an operator uses the operators' API. Only its digest is stored."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=64, help_text="The program that uses it.")
    prefix = models.CharField(max_length=16, help_text="The beginning of the token, for people to recognise it.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True, help_text="The newest use, as of one minute.")

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class OperatorReach(models.Model):
    """The tenants and the agents whose rows an operator may see and act on."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="reach")
    all_tenants = models.BooleanField(default=False, db_default=False, help_text="Rows of every tenant.")
    tenants = models.ManyToManyField(Tenant, blank=True, related_name="+", help_text="Else rows of these tenants.")
    agents = models.TextField(
        default="", db_default="", blank=True, help_text="Only tasks of these agents; empty: of every agent."
    )

    def __str__(self) -> str:
        return f"the reach of {self.user}"
