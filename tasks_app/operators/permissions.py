"""Acts of operators on permissions. Each one is recorded, and takes effect within a second."""

from typing import cast

from django.db import transaction
from django.db.models import QuerySet

from tasks_app.callers.rules import KINDS, Kind, Rule, check_pattern, encode_rules
from tasks_app.models import Permission, Principal, Tenant
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.holders import columns_of

MOST = 500
"""Permissions of one principal or one tenant, which are all read with each of its callers."""


def set_permission(to: Principal | Tenant, kind: Kind, pattern: str, *, allows: bool, by: Operator) -> Permission:
    """Allow or deny names to a principal or to all principals of a tenant. An earlier row for the pattern is replaced.

    Raises ValueError for a kind or a pattern that cannot be one, and for too many permissions.
    """
    if kind not in KINDS:
        raise ValueError(f"the kinds are {', '.join(KINDS)}: {kind!r}")
    pattern = pattern.strip(" ")  # A rule with spaces around a name would deny nothing.
    check_pattern(kind, pattern)
    with transaction.atomic():
        check_room(to, kind, pattern)
        rows = _rows_of(to)
        before = rows.filter(kind=kind, pattern=pattern).first()
        row, _ = rows.update_or_create(kind=kind, pattern=pattern, defaults={"allows": allows} | columns_of(to))
        _publish(to)
        change = Change(row, {"allows": before.allows} if before else {}, {"allows": allows, "of": str(to)})
        record_acts(by, "allow" if allows else "deny", change)
    return row


def check_room(to: Principal | Tenant, kind: str, pattern: str) -> None:
    """Lock a principal or a tenant, and check that it has room for a permission, or one to replace. Raises ValueError.

    It must be called in the transaction that sets the permission, so that the room is still there then.
    """
    _lock(to)
    rows = _rows_of(to)
    if rows.count() >= MOST and not rows.filter(kind=kind, pattern=pattern).exists():
        raise ValueError(f"a principal or a tenant has {MOST} permissions at most: use a pattern for many names")


def remove_permission(row: Permission, by: Operator) -> bool:
    """Remove a permission; return False if it is gone already. Without any of its kind all names are allowed again."""
    to = row.principal or row.tenant
    with transaction.atomic():
        _lock(to)
        present = _rows_of(to).filter(pk=row.pk).first()
        if present is None:
            return False
        record_acts(by, "remove", Change(present, {"allows": present.allows, "of": str(to)}))
        present.delete()
        _publish(to)
    return True


def _rows_of(to: Principal | Tenant) -> QuerySet[Permission]:
    return Permission.objects.filter(**columns_of(to)).order_by("id")


def _lock(to: Principal | Tenant) -> None:
    """Lock the row, so that one operator at a time writes its rules. SQLite has one writer anyway."""
    type(to)._default_manager.select_for_update(no_key=True).get(pk=to.pk)


def _publish(to: Principal | Tenant) -> None:
    """Store the rules where the statement that finds a caller reads them."""
    rules = encode_rules(Rule(row.allows, cast("Kind", row.kind), row.pattern) for row in _rows_of(to))
    type(to)._default_manager.filter(pk=to.pk).update(rules=rules)
