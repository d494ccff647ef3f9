"""Findings about permissions: rules, as the checks of calls read them, that are not those of the permissions."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeVar, cast

import msgspec
from django.db.models import Exists, OuterRef, Q, QuerySet

from tasks_app.callers.rules import Kind, Rule, decode_rules
from tasks_app.doctor.finding import Finding
from tasks_app.doctor.guard import describe, guard
from tasks_app.doctor.snapshot import snapshot
from tasks_app.doctor.work import MOST
from tasks_app.models import Permission, Principal, Tenant

Holder = TypeVar("Holder", Tenant, Principal)

PAGE = 50
"""Tenants or principals examined in one snapshot."""


def examine_rules(_now: datetime) -> Iterator[Finding]:
    """Yield tenants and principals whose calls are checked by other rules than their permissions."""
    of_tenant = Permission.objects.filter(tenant=OuterRef("pk"), principal=None)
    yield from guard(_find(Tenant.objects.filter(_has_any(of_tenant)), "tenant"), "permissions of tenants")
    of_principal = Permission.objects.filter(principal=OuterRef("pk"))
    rows = Principal.objects.filter(_has_any(of_principal)).select_related("tenant")
    yield from guard(_find(rows, "principal"), "permissions of principals")


def _has_any(permissions: QuerySet[Permission]) -> Q:
    """Return the condition of the rows that have rules or permissions."""
    return Q(rules__isnull=False) | Q(Exists(permissions))


def _find(rows: QuerySet[Holder], noun: str) -> Iterator[Finding]:
    """Yield findings about rows, up to MOST."""
    last = count = 0
    while count < MOST:
        with snapshot():
            page = list(rows.filter(pk__gt=last).order_by("pk")[:PAGE])
            findings = [finding for row in page if (finding := _compare(row, noun))]
        yield from findings[: MOST - count]
        if not page:
            return
        last, count = page[-1].pk, count + len(findings)


def _compare(row: Tenant | Principal, noun: str) -> Finding | None:
    """Return a finding if the rules of a row are not its permissions. Call it in a snapshot."""
    is_tenant = isinstance(row, Tenant)
    holder: dict[str, Any] = {"tenant": row, "principal": None} if is_tenant else {"principal": row}
    permissions = Permission.objects.filter(**holder)
    rules = {Rule(one.allows, cast("Kind", one.kind), one.pattern) for one in permissions}
    try:
        difference = len(rules.symmetric_difference(decode_rules(row.rules)))
    except msgspec.DecodeError as error:
        problem = f"cannot be read: {describe(error)}. Its calls fail"
    else:
        if not difference:
            return None
        problem = f"differ from its permissions in {difference:,}. The rules count, and operators see the permissions"
    return Finding(
        kind="permission",
        subject=str(row.pk),
        problem=f"The rules of {noun} {row} {problem}.",
        remedy="Set one of its permissions again, which writes its rules anew: manage.py a2a permissions allow or deny."
        " Find out what wrote to the database.",
    )
