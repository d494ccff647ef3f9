"""The table of OAuth clients."""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models

from tasks_app.models.callers import Principal

CLIENT_CREDENTIALS, AUTHORIZATION_CODE = "client-credentials", "authorization-code"
"""The grants that a client may use, as django-oauth-toolkit names them."""
CONFIDENTIAL, PUBLIC = "confidential", "public"
"""The types of clients (RFC 6749, 2.1): with a secret, or without one."""


class OAuthClient(models.Model):
    """A program that gets access tokens from our own OAuth server, to call in the name of a principal.

    It stands in for the toolkit's table of applications, which reads its columns and methods by these names.
    """

    principal = models.ForeignKey(Principal, models.CASCADE, related_name="clients")
    client_id = models.CharField(max_length=64, unique=True, editable=False)
    name = models.CharField(max_length=64)
    scopes = models.CharField(max_length=255, help_text="The most scopes of its tokens, separated by spaces.")
    authorization_grant_type = models.CharField(
        "grant", max_length=32, choices=[(grant, grant) for grant in (CLIENT_CREDENTIALS, AUTHORIZATION_CODE)]
    )
    client_type = models.CharField("type", max_length=16, choices=[(kind, kind) for kind in (CONFIDENTIAL, PUBLIC)])
    redirect_uris = models.TextField(blank=True, help_text="Separated by spaces.")
    digest = models.CharField(
        max_length=64, null=True, editable=False, help_text="The digest of its secret; null for a public client."
    )
    former_digest = models.CharField(
        max_length=64, null=True, editable=False, help_text="The digest of the secret before the last rotation."
    )
    former_until = models.DateTimeField(
        null=True, editable=False, help_text="The time until which the former secret is valid."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    disabled_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    # Names that the toolkit's modules read. No client has one of the last three grants.
    CLIENT_CONFIDENTIAL, CLIENT_PUBLIC = CONFIDENTIAL, PUBLIC
    GRANT_AUTHORIZATION_CODE, GRANT_CLIENT_CREDENTIALS = AUTHORIZATION_CODE, CLIENT_CREDENTIALS
    GRANT_IMPLICIT, GRANT_PASSWORD, GRANT_OPENID_HYBRID = "implicit", "password", "openid-hybrid"
    skip_authorization: ClassVar = False
    tenant_path: ClassVar = "principal__tenant"

    class Meta:
        verbose_name = "OAuth client"

    def __str__(self) -> str:
        return f"{self.name} ({self.client_id})"

    @property
    def is_active(self) -> bool:
        """Whether its requests and its tokens are accepted."""
        return self.disabled_at is None and self.revoked_at is None

    @property
    def default_redirect_uri(self) -> str | None:
        """The redirect URI of a request that names none, if there is only one."""
        uris = self.redirect_uris.split()
        return uris[0] if len(uris) == 1 else None

    def digests(self, now: datetime) -> list[str]:
        """Return the digests of its valid secrets."""
        is_former_valid = self.former_until is not None and self.former_until > now
        return [digest for digest in (self.digest, self.former_digest if is_former_valid else None) if digest]

    def allows_grant_type(self, *grants: str) -> bool:
        return self.authorization_grant_type in grants

    def is_usable(self, request: object) -> bool:
        return self.is_active

    def get_allowed_schemes(self) -> list[str]:
        """Return the URI schemes to which a browser may be redirected."""
        return ["https", "http"]

    def origin_allowed(self, origin: str) -> bool:
        """Return whether pages of the origin may read answers of the token endpoint."""
        return bool({origin, "*"} & set(settings.A2A_CORS_ORIGINS))
