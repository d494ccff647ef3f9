"""Service accounts: programs and devices that prove who they are by a token or a certificate, found in groups."""

import hashlib
from collections.abc import Sequence
from typing import Self

from django.conf import settings
from django.db import transaction
from msgspec import Struct

from tasks_app import clock
from tasks_app.callers.access import Caller, caller_for
from tasks_app.callers.issuers import issuers
from tasks_app.callers.principals import find_or_make
from tasks_app.callers.scopes import ALL, narrow
from tasks_app.callers.wrong_values import WrongValue
from tasks_app.database.work import Work
from tasks_app.ids import uuid7
from tasks_app.models import AuditEntry, Principal, ServiceAccount, Tenant

CERTIFICATE = "certificate"
"""The issuer of accounts that are recognised by a certificate."""
CREATION = "accounts/create"
"""The method in the audit entry of an account that a token has created."""


def accepted_issuers() -> tuple[str, ...]:
    """Return the issuers whose accounts may call: those of A2A_ISSUERS and CERTIFICATE, while their schemes are on."""
    tokens = tuple(issuers()) if "oidc" in settings.A2A_SCHEMES else ()
    return (*tokens, CERTIFICATE) if "mtls" in settings.A2A_SCHEMES else tokens


class FindAccount(Work[Caller | None], Struct, frozen=True):
    """Finds the caller of a service account. Its result is None for an account that is unknown or disabled, for a token
    that was issued before the account's `not_before`, and for one that has expired."""

    lane = "read"
    repeatable = True

    issuer: str
    subjects: tuple[str, ...]
    """The names that it may be registered under, the most specific first."""
    scopes: frozenset[str] | None = None
    """The scopes of the token; None if the account alone says what it may."""
    issued_at: float | None = None
    expires_at: float | None = None

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[Caller | None]:
        pairs = {(item.issuer, subject) for item in items for subject in item.subjects}
        rows = ServiceAccount.objects.select_related("principal__tenant").filter(
            issuer__in={issuer for issuer, _ in pairs}, subject__in={subject for _, subject in pairs}
        )
        by_name = {(row.issuer, row.subject): row for row in rows}
        return [item._caller(by_name) for item in items]

    def _caller(self, rows: dict[tuple[str, str], ServiceAccount]) -> Caller | None:
        names = ((self.issuer, subject) for subject in self.subjects)
        row = next((rows[name] for name in names if name in rows), None)
        return None if row is None else caller_of(row, self.scopes, self.issued_at, self.expires_at)


def credential_of(row: ServiceAccount) -> str:
    """Return the credential of the account, as calls, audit entries and webhooks name it."""
    return f"{'mtls' if row.issuer == CERTIFICATE else 'oidc'}:{row.pk}"


def caller_of(
    row: ServiceAccount, scopes: frozenset[str] | None, issued_at: float | None, expires_at: float | None
) -> Caller | None:
    """Return the caller of an account with a token; None if the account or the token is not valid any more."""
    if row.disabled_at is not None or (expires_at is not None and expires_at <= clock.now().timestamp()):
        return None
    if row.not_before is not None and issued_at is not None and issued_at < row.not_before.timestamp():
        return None
    most = frozenset(row.scopes.split())
    return caller_for(
        row.principal,
        most if scopes is None else narrow(scopes - {ALL}, most),  # A token never has all scopes by one word.
        language=row.language,
        credential=credential_of(row),
        expires_at=expires_at,
        issued_at=issued_at,
    )


class CreateAccount(Work[None], Struct, frozen=True):
    """Creates the account of a subject that has none, with a principal of its own."""

    lane = "write"
    repeatable = True

    issuer: str
    subject: str
    tenant: str
    scopes: str

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[None]:
        with transaction.atomic():
            for item in items:
                item._create()
        return [None] * len(items)

    def _create(self) -> None:
        if ServiceAccount.objects.filter(issuer=self.issuer, subject=self.subject).exists():
            return
        tenant, _ = Tenant.objects.get_or_create(name=self.tenant)
        principal, _ = Principal.objects.get_or_create(tenant=tenant, name=principal_name(self.issuer, self.subject))
        row, is_new = ServiceAccount.objects.get_or_create(
            issuer=self.issuer, subject=self.subject, defaults={"principal": principal, "scopes": self.scopes}
        )
        if is_new and settings.A2A_AUDIT:
            _record_creation(row)


def _record_creation(row: ServiceAccount) -> None:
    """Store an audit entry, in the transaction of the change. The address of the caller is in the entry of the call."""
    AuditEntry.objects.create(
        id=uuid7(),
        created_at=clock.now(),
        caller_id=row.principal_id,
        caller=row.principal.name,
        tenant_id=row.principal.tenant_id,
        tenant=row.principal.tenant.name,
        credential=credential_of(row),
        method=CREATION,
        outcome="result",
    )


def principal_name(issuer: str, subject: str) -> str:
    """Return the name of the principal of an account that is created.

    The name belongs to this subject of this issuer alone: a subject with the name of another principal must not get the
    tasks of that principal.
    """
    return f"{subject[:40]}@{hashlib.sha256(f'{issuer} {subject}'.encode()).hexdigest()[:16]}"


def find_again(ids: Sequence[tuple[int, float]]) -> list[Caller | None]:
    """Return the callers of accounts by their ids, as of tokens that were valid at these times."""
    accounts = ServiceAccount.objects.select_related("principal__tenant").filter(issuer__in=accepted_issuers())
    rows = accounts.in_bulk({pk for pk, _ in ids})
    return [caller_of(rows[pk], None, since, None) if pk in rows else None for pk, since in ids]


def register(
    issuer: str, subject: str, principal: str, tenant: str, scopes: str, language: str | None
) -> ServiceAccount:
    """Register an account for a principal, which is made if there is none. Raises ValueError if the account exists, or
    if the principal's name is reserved."""
    owner = find_or_make(tenant, principal)
    row, is_new = ServiceAccount.objects.get_or_create(
        issuer=issuer, subject=subject, defaults={"principal": owner, "scopes": scopes, "language": language}
    )
    if not is_new:
        # The account may be of a tenant that the operator does not see.
        id = f"; its id is {row.pk}" if row.principal.tenant_id == owner.tenant_id else ""
        raise WrongValue("subject", f"there is an account for {subject!r} of {issuer} already{id}")
    return row
