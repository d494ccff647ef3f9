"""Service accounts: the verbs of operators. Each records an act in the transaction of its change."""

import re
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from tasks_app import clock
from tasks_app.callers.access import check_language, check_tenant_of
from tasks_app.callers.issuers import issuers
from tasks_app.callers.service_accounts import CERTIFICATE, register
from tasks_app.callers.wrong_values import WrongValue
from tasks_app.models import ServiceAccount
from tasks_app.operators import reach
from tasks_app.operators.audit import Change, Operator, record_acts

KINDS_OF_SUBJECT = ("sha256:", "uri:", "dns:", "email:", "dn:")
"""The beginnings of the subjects of certificates."""
AHEAD = timedelta(minutes=5)
"""The longest time by which a not-before may lie ahead."""
NOT_YOURS = "Subjects of this issuer may belong to other tenants: ask an operator who sees every tenant"
"""The refusal where `may_register` is false."""


def may_register(user: Any, issuer: str) -> bool:
    """Return whether an operator may register subjects of an issuer.

    Unknown subjects belong to the tenant that A2A_ISSUERS names for it, and those of certificates to none. An operator
    of another tenant who registers one would get the calls of a program that is not theirs.
    """
    if reach.reach_of(user).tenants is None:
        return True
    rules = issuers().get(issuer)
    return rules is not None and reach.may_write(user, rules.tenant)


def add(
    issuer: str,
    subject: str,
    operator: Operator,
    *,
    principal: str,
    tenant: str = "default",
    scopes: str = "*",
    language: str | None = None,
) -> ServiceAccount:
    """Register an account. A new principal is made as well. Raises ValueError with a sentence."""
    check_tenant_of(tenant)
    check_language(language)
    _check_name(issuer, subject)
    with transaction.atomic():
        row = register(issuer, subject, principal, tenant, scopes, language)
        after = {"principal": principal, "tenant": tenant, "scopes": row.scopes, "language": row.language}
        record_acts(operator, "make", Change(row, {}, after))
    return row


def change(account: ServiceAccount, operator: Operator, scopes: str) -> bool:
    """Set the most scopes that the account may have. Return false if it has them already.

    They hold for tokens that were issued before, too: a token has the scopes that are in both.
    """
    with transaction.atomic():
        row = _lock(account)
        before, row.scopes = row.scopes, " ".join(scopes.split())
        if row.scopes == before:
            return False
        row.save(update_fields=["scopes"])
        record_acts(operator, "change", Change(row, {"scopes": before}, {"scopes": row.scopes}))
    account.refresh_from_db()
    return True


def disable(account: ServiceAccount, operator: Operator) -> bool:
    """Refuse the tokens and certificates of the account until `enable`. Return false if they were refused already."""
    return _set(account, operator, "disable", disabled_at=clock.now())


def enable(account: ServiceAccount, operator: Operator) -> bool:
    """Accept the tokens and certificates of the account again. Return false if it was not disabled."""
    return _set(account, operator, "enable", disabled_at=None)


def set_not_before(account: ServiceAccount, operator: Operator, time: datetime | None = None) -> bool:
    """Refuse all tokens that were issued before a time, by default now. Return false if an equal or later time is set.

    A certificate has no time of issue that counts here. Raises ValueError for it, and for a time too far ahead.
    """
    time = time or clock.now()
    if account.issuer == CERTIFICATE:
        raise ValueError("an account of a certificate has no tokens: disable it instead")
    if time > clock.now() + AHEAD:
        raise ValueError("the time must not be more than 5 minutes ahead: tokens of that time would be refused as well")
    return _set(account, operator, "not-before", not_before=time)


def _set(account: ServiceAccount, operator: Operator, verb: str, **times: datetime | None) -> bool:
    """Set a time of an account, and record the act. Return false if there is nothing to change."""
    ((column, time),) = times.items()
    with transaction.atomic():
        row = _lock(account)
        before = getattr(row, column)
        is_later = column == "not_before" and time is not None and (before is None or time > before)
        if not is_later and (column == "not_before" or (before is None) == (time is None)):
            return False
        setattr(row, column, time)
        row.save(update_fields=[column])
        record_acts(operator, verb, Change(row, {column: before}, {column: time}))
    account.refresh_from_db()
    return True


def _lock(account: ServiceAccount) -> ServiceAccount:
    """Lock the row of an account until the end of the transaction, and return it as it is now."""
    rows = ServiceAccount.objects.select_for_update(of=("self",)).select_related("principal__tenant")
    return rows.get(pk=account.pk)


def _check_name(issuer: str, subject: str) -> None:
    """Check that tokens or certificates can have this name. Raises ValueError."""
    if not 0 < len(subject) <= 255 or not subject.isprintable():
        raise WrongValue("subject", "a subject has 1 to 255 printable characters")
    if issuer == CERTIFICATE:
        if not subject.startswith(KINDS_OF_SUBJECT):
            raise WrongValue(
                "subject", f"the subject of a certificate begins with one of {', '.join(KINDS_OF_SUBJECT)}"
            )
        kind, _, name = subject.partition(":")
        if kind == "sha256" and not re.fullmatch("[0-9a-f]{64}", name):
            raise WrongValue("subject", "a thumbprint is 64 hexadecimal digits in lower case, without colons")
        if not name.strip():
            raise WrongValue("subject", f"a name must follow {subject}")
    elif issuer not in issuers():
        names = ", ".join([*issuers(), CERTIFICATE])
        raise WrongValue(
            "issuer", f"A2A_ISSUERS has no issuer {issuer!r} here; an account can be of one of these: {names}"
        )


def describe(account: ServiceAccount) -> dict[str, Any]:
    """Return the columns of an account that operators may see."""
    return {
        "id": account.pk,
        "issuer": account.issuer,
        "subject": account.subject,
        "principal": account.principal.name,
        "tenant": account.principal.tenant.name,
        "scopes": account.scopes,
        "language": account.language,
        "not_before": account.not_before,
        "created_at": account.created_at,
        "disabled_at": account.disabled_at,
    }
