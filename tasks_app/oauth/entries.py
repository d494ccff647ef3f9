"""Entries of the audit for what clients do at our OAuth server: tokens issued, and tokens revoked by their clients."""

from typing import Any

from django.conf import settings

from tasks_app import clock
from tasks_app.ids import uuid7
from tasks_app.models import AuditEntry
from tasks_app.oauth.server import APPROVER

ISSUE, REVOKE = "oauth2/token", "oauth2/revoke"
"""The methods in entries: the paths of the endpoints."""


def record(request: Any, method: str) -> None:
    """Store an entry for the client of oauthlib's request, in the transaction of the change. It names no token."""
    if not settings.A2A_AUDIT:
        return
    client, visitor = request.client, request.headers[APPROVER]
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
        outcome="result",
        trace=visitor.trace or "",
    )
