"""Stored bytes of owners as operators see them, next to the quota."""

from collections import Counter
from typing import Any

from django.conf import settings

from tasks_app.limits.stored import KINDS, sum_stored
from tasks_app.models import Principal


def amounts_of(kinds: Counter[str]) -> dict[str, Any]:
    """Return the bytes of an owner in all and by kind, and whether the owner is at the quota."""
    total, most = kinds.total(), settings.A2A_OWNER_STORED_BYTES
    return {"bytes": total, "is_full": bool(most) and total >= most, **{kind: kinds[kind] for kind in KINDS}}


def amounts_of_principal(row: Principal) -> dict[str, Any]:
    """Return the amounts of a principal, as the rows say now, and the most that it may have stored."""
    kinds = sum_stored([row.pk]).get(row.pk, Counter())
    return {"most": settings.A2A_OWNER_STORED_BYTES, **amounts_of(kinds)}


def list_owners() -> list[tuple[int, Counter[str]]]:
    """Return the owners with what they have stored, the most first. It reads each table once."""
    return sorted(sum_stored().items(), key=lambda pair: -pair[1].total())
