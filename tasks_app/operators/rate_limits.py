"""Rate limits of single callers and tenants, as operators set them, with their acts."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max

from tasks_app import clock
from tasks_app.models import RateLimit
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.holders import columns_of, find_holder

MOST = 2_000_000_000
"""The largest number of units."""


def set_limit(
    by: Operator, *, tenant: str, principal: str | None = None, per_minute: int, burst: int | None = None
) -> RateLimit:
    """Set the limit of a principal, or of a tenant as a whole, and record the act. Processes apply it at their next
    sweep.

    Raises ValueError for a tenant or a principal that does not exist, for numbers outside the bounds, and for a
    burst of no limit.
    """
    if not 0 <= per_minute <= MOST or not 1 <= (1 if burst is None else burst) <= MOST:
        raise ValueError(f"per_minute must be 0 (no limit) to {MOST:,}, and burst 1 to {MOST:,}")
    if not per_minute and burst is not None:
        raise ValueError("A rate of 0 is no limit, and has no burst: leave the burst out")
    subject = columns_of(find_holder(tenant, principal))
    values: dict[str, Any] = {"per_minute": per_minute, "burst": burst}
    with transaction.atomic():
        is_new = False
        # Another operator may set the limit, or remove it, between the two statements.
        while (row := RateLimit.objects.select_for_update().filter(**subject).first()) is None:
            defaults = values | {"changed_at": _later()}
            _, is_new = RateLimit.objects.get_or_create(**subject, defaults=defaults)
        before = {} if is_new else {"per_minute": row.per_minute, "burst": row.burst}
        row.per_minute, row.burst, row.changed_at = per_minute, burst, _later()
        row.save()
        record_acts(by, "set", Change(row, before, values))
    return row


def remove_limit(row: RateLimit, by: Operator) -> bool:
    """Remove a limit and record the act; return False if it is gone already. The settings apply to the caller again."""
    before = {"per_minute": row.per_minute, "burst": row.burst}
    with transaction.atomic():
        if not RateLimit.objects.select_for_update().filter(pk=row.pk).exists():
            return False
        record_acts(by, "remove", Change(row, before, {}))
        RateLimit.objects.filter(pk=row.pk).delete()
    return True


def _later() -> datetime:
    """Return the time of a change. It is later than the times of all earlier changes, even if the clock of the process
    that made one is ahead.

    Processes notice a change by the latest time of all rows.
    """
    latest = RateLimit.objects.aggregate(latest=Max("changed_at"))["latest"]
    now = clock.now()
    return now if latest is None else max(now, latest + timedelta(microseconds=1))
