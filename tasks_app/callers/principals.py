"""Principals by their names. Each is made with its first key, account, client or workspace, and so is its tenant."""

from collections.abc import Collection

from tasks_app.callers.wrong_values import WrongValue
from tasks_app.models import Principal, Tenant

EVERYONE = "*"
"""The word that stands for all principals of a tenant in `a2a permissions`."""


def find_or_make(tenant: str, name: str) -> Principal:
    """Return the principal of a tenant. Raises WrongValue for the name EVERYONE, unless it exists already."""
    if name == EVERYONE and not Principal.objects.filter(tenant__name=tenant, name=name).exists():
        raise WrongValue("principal", f"no principal can be called {EVERYONE}, which stands for all of a tenant")
    home, _ = Tenant.objects.get_or_create(name=tenant)
    return Principal.objects.get_or_create(tenant=home, name=name)[0]


def lock_owners(owners: Collection[int]) -> set[int]:
    """Lock these principals until the end of the transaction, so that one process at a time counts what they own.
    Return those that no other transaction has locked.

    SQLite has one writer anyway.
    """
    rows = Principal.objects.select_for_update(skip_locked=True, no_key=True).filter(pk__in=owners)
    return set(rows.values_list("pk", flat=True))
