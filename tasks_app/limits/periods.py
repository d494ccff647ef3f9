"""The periods of stored budgets: when they end, and the SQL by which a change of a budget begins the next one."""

from datetime import datetime, timedelta
from typing import Any

from tasks_app import clock
from tasks_app.database.sql import sql_time
from tasks_app.models.budgets import DAY, MONTH

# Nothing runs at the end of a period. The first change of the budget after that begins the next one.
SPENT = "case when b.resets_at <= %s then 0 else b.spent end"
_AT = "case when b.resets_at > %s or b.resets_at is null then b.resets_at when b.period = '{day}' then {a} else {b} end"
RESETS_AT = _AT.format(day=DAY, a="{a}", b="{b}")


def times() -> tuple[Any, Any, Any]:
    """Return the time of day and the next ends of a day and a month, as values of SQL."""
    now = clock.now()
    return sql_time(now), sql_time(next_day(now)), sql_time(next_month(now))


def next_day(now: datetime) -> datetime:
    """Return the end of the day, in UTC."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def next_month(now: datetime) -> datetime:
    """Return the end of the month, in UTC."""
    return (next_day(now.replace(day=28)) + timedelta(days=4)).replace(day=1)


def end_of(period: str, now: datetime) -> datetime | None:
    """Return the end of the period that this time is in; None for a total, which does not end."""
    return {DAY: next_day, MONTH: next_month}[period](now) if period in {DAY, MONTH} else None
