"""The tables of callers: tenants, principals and API keys."""

from typing import ClassVar

from django.conf import settings
from django.db import models


class Tenant(models.Model):
    """A group of principals that shares nothing with other groups."""

    name = models.CharField(max_length=64, unique=True)
    rules = models.TextField(null=True, editable=False, help_text="JSON: the rows of Permission; null without any.")
    created_at = models.DateTimeField(auto_now_add=True)

    tenant_path: ClassVar = "pk"

    def __str__(self) -> str:
        return self.name


class Principal(models.Model):
    """An identity with API keys. It owns the tasks that any of them creates."""

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="principals")
    name = models.CharField(max_length=64)
    rules = models.TextField(null=True, editable=False, help_text="JSON: the rows of Permission; null without any.")
    created_at = models.DateTimeField(auto_now_add=True)

    tenant_path: ClassVar = "tenant"

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "name"], name="principal_name")]

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """The secret by which a principal is recognised. Only its digest is stored."""

    principal = models.ForeignKey(Principal, models.CASCADE, related_name="keys")
    name = models.CharField(max_length=64)
    prefix = models.CharField(max_length=16, help_text="The beginning of the key, for people to recognise it.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    scopes = models.CharField(max_length=255, default="*", help_text="Separated by spaces; * is all.")
    language = models.CharField(
        max_length=32,
        null=True,
        blank=True,
        help_text="The language of calls that name no version, if it has their method; null: the method decides.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    networks = models.TextField(
        default="", db_default="", help_text="The networks that calls may come from, separated by spaces; empty: any."
    )
    last_used_at = models.DateTimeField(null=True, help_text="The last use, to the minute.")

    tenant_path: ClassVar = "principal__tenant"

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class ServiceAccount(models.Model):
    """A program or a device that proves who it is by a token of an issuer, or by a certificate, instead of a key."""

    issuer = models.CharField(max_length=255, help_text="The issuer of its tokens; `certificate` for a certificate.")
    subject = models.CharField(max_length=255, help_text="Its name at the issuer, or in the certificate.")
    principal = models.ForeignKey(Principal, models.CASCADE, related_name="accounts")
    scopes = models.CharField(
        max_length=255, default="*", help_text="The most scopes that it may have, separated by spaces; * is all."
    )
    language = models.CharField(max_length=32, null=True, blank=True, help_text="The language, as of an API key.")
    not_before = models.DateTimeField(null=True, blank=True, help_text="Tokens issued before are refused.")
    created_at = models.DateTimeField(auto_now_add=True)
    disabled_at = models.DateTimeField(null=True, blank=True)
    tenant_path: ClassVar = "principal__tenant"

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["issuer", "subject"], name="account_subject")]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"


class UserLink(models.Model):
    """The permission of a user of the project to call in the name of a principal, from pages of this server."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="+")
    principal = models.ForeignKey(Principal, models.CASCADE, related_name="+")
    scopes = models.CharField(max_length=255, help_text="Separated by spaces; * is all.")
    created_at = models.DateTimeField()

    tenant_path: ClassVar = "principal__tenant"

    class Meta:
        verbose_name = "user link"

    def __str__(self) -> str:
        return f"{self.user} as {self.principal}"


class SocketTicket(models.Model):
    """A ticket that opens one WebSocket connection in the name of a key. Only its digest is stored."""

    digest = models.CharField(max_length=64, primary_key=True, editable=False)
    owner = models.ForeignKey(Principal, models.CASCADE, related_name="+")
    key_digests = models.TextField(help_text="The digests under which the key may be stored, separated by spaces.")
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"a ticket until {self.expires_at}"
