"""Entries of the audit for what happens at our OAuth server: tokens issued, revoked by their clients, or used twice."""

from typing import Any

from django.conf import settings

from tasks_app import clock
from tasks_app.ids import uuid7
from tasks_app.models import AuditEntry, OAuthClient
from tasks_app.oauth.server import APPROVER

ISSUE, REVOKE = "oauth2/token", "oauth2/revoke"
"""The methods in entries: the paths of the endpoints."""
REUSE = "oauth2/reuse"
"""The method in entries of tokens that ended, because a code or a refresh token was used twice."""


def record(request: Any, method: str, client: OAuthClient | None = None) -> None:
    """Store an entry, which names no token, in the transaction of the change.

    The client is by default that of oauthlib's request.
    """
    if not settings.A2A_AUDIT:
        return
    client, visitor = client or request.client, request.headers[APPROVER]
    AuditEntry.objects.create(
        id=uuid7(),
        created_at=clock.now(),
        caller_id=client.principal_id,
        caller=client.principal.name,
        tenant_id=client.principal.tenant_id,
        tenant=client.principal.tenant.name,
        credential=f"oauth:{client.pk}",
        peer=visitor.peer,
        door="http",
        method=method,
        outcome="error" if method == REUSE else "result",
        trace=visitor.trace or "",
    )
