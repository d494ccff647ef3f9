"""The credentials that registered webhooks. While its credential is not valid, nothing is sent to a webhook.

An access token ends every few minutes, and a session every few hours, so neither ends a webhook: its service account,
OAuth client or user does. Webhooks of API keys end with the key.
"""

from datetime import datetime
from functools import lru_cache

from django.contrib.auth import get_user_model
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

from tasks_app.callers.kinds import is_accepted
from tasks_app.callers.scopes import WRITE_WEBHOOKS
from tasks_app.callers.service_accounts import accepted_issuers
from tasks_app.models import ApiKey, OAuthClient, ServiceAccount, Task, UserLink, Webhook

REVOKED = "the key that registered it was revoked"
EXPIRED = "the key that registered it has expired"
KEY_UNSCOPED = "the key that registered it has lost the scope for webhooks"
ACCOUNT = "the service account that registered it was disabled, or lost the scope for webhooks"
TOKENS = "the service account that registered it refuses the tokens of that time"
SCHEME = "A2A_SCHEMES lists no scheme any more that takes the credential that registered it"
ISSUER = "the issuer of the service account that registered it is not in A2A_ISSUERS, or its scheme not in A2A_SCHEMES"
CLIENT = "the OAuth client that registered it was disabled or revoked, or lost the scope for webhooks"
USER = (
    "the user who registered it was disabled, may not open the admin any more, was unlinked or linked to another "
    "principal, or lost the scope for webhooks"
)
_NAMES = sorted(WRITE_WEBHOOKS.granted_by)
_SCOPES = rf"(^|\s)({'|'.join(name.replace('*', '[*]') for name in _NAMES)})(\s|$)"
"""The scopes of a key that may register webhooks, as a regular expression."""
_SCOPED = " or ".join(f"' ' || h.scopes || ' ' like '% {name} %'" for name in _NAMES)
_ACCOUNT = (
    "h.disabled_at is null and (h.not_before is null or h.not_before <= {webhooks}.evidence_at)"
    " and h.issuer in ({issuers})"
)
_USER = (
    "exists (select 1 from {users} u where u.id = h.user_id and u.is_active and u.is_staff)"
    # The link may lead to another principal than that of the task by now.
    " and h.principal_id = (select t.owner_id from {tasks} t where t.id = {webhooks}.task_id)"
)
_HOLDERS = {
    "oidc": (ServiceAccount, "h.id", _ACCOUNT),
    "mtls": (ServiceAccount, "h.id", _ACCOUNT),
    "oauth": (OAuthClient, "h.id", "h.disabled_at is null and h.revoked_at is null"),
    "user": (UserLink, "h.user_id", _USER),
}
"""By kind of credential: the table of its holder, the column that the credential names, and the condition."""


def has_credential(now: datetime) -> Q:
    """Return the condition of webhooks whose credential is valid, or that were registered before webhooks had one.

    The look-ups by primary key are parts of the statement that looks for due webhooks, and happen for due ones alone.
    """
    lasts = Q(key__expires_at=None) | Q(key__expires_at__gt=now)
    by_key = Q(key__revoked_at=None) & lasts & Q(key__scopes__regex=_SCOPES)
    others = Q(key=None) & Q(_by_another(accepted_issuers(), _accepted_kinds()))
    return others | (Q(key__isnull=False) & by_key) if is_accepted("key") else others


def why_ended(webhook: Webhook, now: datetime) -> str:
    """Return the reason, for operators, why nothing is sent to a webhook whose credential is not valid."""
    kind, _, pk = (webhook.caller_credential or "").partition(":")
    if kind in {"oidc", "mtls"}:
        return _why_account_ended(ServiceAccount.objects.filter(pk=pk, disabled_at=None).first(), webhook)
    if not is_accepted("key" if webhook.key_id is not None else kind):
        return SCHEME
    if webhook.key_id is not None or kind == "key":
        return _why_key_ended(ApiKey.objects.filter(pk=webhook.key_id or 0).first(), now)
    return CLIENT if kind == "oauth" else USER


def _why_account_ended(account: ServiceAccount | None, webhook: Webhook) -> str:
    if account is None:
        return ACCOUNT
    if account.issuer not in accepted_issuers():
        return ISSUER
    evidence_at = webhook.evidence_at
    rejects = account.not_before is not None and evidence_at is not None and account.not_before > evidence_at
    return TOKENS if rejects else ACCOUNT


def _why_key_ended(key: ApiKey | None, now: datetime) -> str:
    if key is None or key.revoked_at is not None:
        return REVOKED
    return EXPIRED if key.expires_at is not None and key.expires_at <= now else KEY_UNSCOPED


def _holder_sql(kind: str, issuers: int) -> str:
    """Return the condition, in SQL, of webhooks whose credential is of a kind and valid. Accounts have as many
    placeholders for their issuers."""
    model, column, condition = _HOLDERS[kind]
    webhooks, users, tasks = (each._meta.db_table for each in (Webhook, get_user_model(), Task))
    number = f"cast(substr({webhooks}.caller_credential, {len(kind) + 2}) as bigint)"
    places = ", ".join(["%s"] * issuers) or "null"
    condition = condition.format(webhooks=webhooks, users=users, tasks=tasks, issuers=places)
    # A case, because only it is sure to be read in order: another credential may have no number there.
    scoped = _SCOPED.replace("%", "%%")
    rows = f"select 1 from {model._meta.db_table} h where {column} = {number} and {condition} and ({scoped})"  # noqa: S608
    return f"when {webhooks}.caller_credential like '{kind}:%%' then exists ({rows})"


def _accepted_kinds() -> tuple[str, ...]:
    """Return the kinds of holders whose scheme is on. Those of accounts are decided by their issuers."""
    return tuple(kind for kind, (_, _, condition) in _HOLDERS.items() if condition is _ACCOUNT or is_accepted(kind))


@lru_cache(maxsize=8)
def _by_another(issuers: tuple[str, ...], kinds: tuple[str, ...]) -> RawSQL:
    """Return the condition of webhooks of other credentials than keys. Django would take 8 ms to build it each time."""
    cases = " ".join(_holder_sql(kind, len(issuers)) for kind in kinds)
    values = [issuer for _, _, condition in _HOLDERS.values() if condition is _ACCOUNT for issuer in issuers]
    column = f"{Webhook._meta.db_table}.caller_credential"
    return RawSQL(f"case when {column} is null then true {cases} else false end", values, BooleanField())  # noqa: S611
