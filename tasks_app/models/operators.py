"""The tables of operators: the tokens of their programs, and the tenants and agents that they may see.

The people themselves, their passwords and roles, are in Django's own tables of users and groups.
"""

import secrets
from binascii import unhexlify

from django.conf import settings
from django.db import models
from django_otp.plugins.otp_totp.models import TOTPDevice

from tasks_app.models.callers import Tenant
from tasks_app.sealing import unseal


class OperatorToken(models.Model):
    """A secret by which a program of an operator uses the operators' API. Only its digest is stored."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=64, help_text="The program that uses it.")
    prefix = models.CharField(max_length=16, help_text="The beginning of the token, for people to recognise it.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    password_digest = models.CharField(max_length=64, editable=False, default="", db_default="")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True, help_text="The newest use, as of one minute.")
    administers = models.BooleanField(
        default=False, db_default=False, help_text="Whether it may do what gives rights to others."
    )

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class OperatorDevice(TOTPDevice):  # type: ignore[misc]  # django-otp ships no types
    """The app that gives an operator's one-time codes. Its key is sealed.

    The column of django-otp for the key, which is too short for a sealed one, has random digits. An empty one would be
    a key as well, which everyone knows.
    """

    sealed_key = models.TextField(editable=False, help_text="Sealed: the key in hexadecimal digits.")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"

    @property
    def bin_key(self) -> bytes:
        """The key, which django-otp computes codes with. Raises Unreadable."""
        return unhexlify(unseal(self.sealed_key))


def decoy() -> str:
    """Return random digits for the column of a key that is stored elsewhere."""
    return secrets.token_hex(20)


class OperatorReach(models.Model):
    """The tenants and the agents whose rows an operator may see and act on."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="reach")
    all_tenants = models.BooleanField(default=False, db_default=False, help_text="Rows of every tenant.")
    tenants = models.ManyToManyField(Tenant, blank=True, related_name="+", help_text="Else rows of these tenants.")
    agents = models.TextField(
        default="", db_default="", blank=True, help_text="Only tasks of these agents; empty: of every agent."
    )

    def __str__(self) -> str:
        return f"the reach of {self.user}" if self.user_id else "the reach"  # The admin names it once it is deleted.
