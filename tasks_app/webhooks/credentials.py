"""The credentials that registered webhooks. While its credential is not valid, nothing is sent to a webhook.

An access token ends every few minutes, and a session every few hours, so neither ends a webhook: its service account,
OAuth client or user does. Webhooks of API keys end with the key.
"""

from datetime import datetime

from django.db.models import BigIntegerField, Exists, Model, OuterRef, Q, Value
from django.db.models.functions import Cast, StrIndex, Substr

from tasks_app.callers.scopes import WRITE_WEBHOOKS
from tasks_app.models import ApiKey, OAuthClient, ServiceAccount, UserLink, Webhook

REVOKED = "the key that registered it was revoked"
EXPIRED = "the key that registered it has expired"
KEY_UNSCOPED = "the key that registered it has lost the scope for webhooks"
ACCOUNT = "the service account that registered it was disabled, or lost the scope for webhooks"
TOKENS = "the service account that registered it refuses the tokens of that time"
CLIENT = "the OAuth client that registered it was disabled or revoked, or lost the scope for webhooks"
USER = "the user who registered it was disabled or unlinked, or lost the scope for webhooks"
_SCOPED = rf"(^|\s)({'|'.join(name.replace('*', '[*]') for name in sorted(WRITE_WEBHOOKS.granted_by))})(\s|$)"
"""The scopes of a credential that may register webhooks, as a regular expression."""


def has_credential(now: datetime) -> Q:
    """Return the condition of webhooks whose credential is valid, or that were registered before webhooks had one.

    The look-ups by primary key are parts of the statement that looks for due webhooks, and happen for due ones alone.
    """
    lasts = Q(key__expires_at=None) | Q(key__expires_at__gt=now)
    by_key = Q(key__revoked_at=None) & lasts & Q(key__scopes__regex=_SCOPED)
    by_account = (_is("oidc") | _is("mtls")) & Q(_holder(ServiceAccount, "pk", _account()))
    by_client = _is("oauth") & Q(_holder(OAuthClient, "pk", Q(disabled_at=None, revoked_at=None)))
    by_user = _is("user") & Q(_holder(UserLink, "user_id", Q(user__is_active=True)))
    by_another = Q(caller_credential=None) | by_account | by_client | by_user
    return (Q(key=None) & by_another) | (Q(key__isnull=False) & by_key)


def why_ended(webhook: Webhook, now: datetime) -> str:
    """Return the reason, for operators, why nothing is sent to a webhook whose credential is not valid."""
    kind, _, pk = (webhook.caller_credential or "").partition(":")
    if webhook.key_id is not None or kind == "key":
        return _why_key_ended(ApiKey.objects.filter(pk=webhook.key_id or 0).first(), now)
    if kind in {"oidc", "mtls"}:
        rejects = ServiceAccount.objects.filter(pk=pk, disabled_at=None, not_before__gt=webhook.evidence_at)
        return TOKENS if rejects.exists() else ACCOUNT
    return CLIENT if kind == "oauth" else USER


def _why_key_ended(key: ApiKey | None, now: datetime) -> str:
    if key is None or key.revoked_at is not None:
        return REVOKED
    return EXPIRED if key.expires_at is not None and key.expires_at <= now else KEY_UNSCOPED


def _is(kind: str) -> Q:
    return Q(caller_credential__startswith=f"{kind}:")


def _account() -> Q:
    return Q(disabled_at=None) & (Q(not_before=None) | Q(not_before__lte=OuterRef("evidence_at")))


def _holder(model: type[Model], column: str, condition: Q) -> Exists:
    """Return the condition that the row named by the credential meets another condition, and has the scope."""
    credential = OuterRef("caller_credential")
    number = Cast(Substr(credential, StrIndex(credential, Value(":")) + 1), BigIntegerField())
    return Exists(model._default_manager.filter(condition, **{column: number}, scopes__regex=_SCOPED))
