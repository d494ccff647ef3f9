"""The parts of statements that differ between the databases, or that statements of several rooms share."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import BigIntegerField, Func

VISIBLE = "(t.id || ':' || t.tenant_id || ':' || t.owner_id)"
"""SQL for the result of `sight_of`: task t is visible to a caller if the two are equal."""


def on_postgres() -> bool:
    return connection.vendor == "postgresql"


def length_function() -> str:
    """Return the SQL function for the length of a text. PostgreSQL knows the bytes of a text without reading it."""
    return "octet_length" if on_postgres() else "length"


def length_of(column: str) -> Func:
    """Return the length of a column with texts, for a query of Django."""
    return Func(column, function=length_function(), output_field=BigIntegerField())


def sight_of(task_id: str, tenant_id: int, owner_id: int) -> str:
    """Return the text that stands for the right of an owner to see a task."""
    return f"{task_id}:{tenant_id}:{owner_id}"


def among(states: Iterable[str]) -> str:
    """Return the SQL that compares a column with some states. The states are part of the text: otherwise PostgreSQL
    would not use an index with a condition on them."""
    first, *others = sorted(f"'{state}'" for state in states)
    return f"in ({', '.join((first, *others))})" if others else f"= {first}"


def one_of(column: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the SQL of the condition that a column has one of some values, and its parameters."""
    if on_postgres():
        return f"{column} = any(%s)", [list(values)]
    return f"{column} in ({', '.join(['%s'] * len(values))})", list(values)


def sqlite_time(time: datetime) -> str:
    """Write a time as Django stores it: UTC, naive. The microseconds are always there so that times sort as text."""
    return time.isoformat(" ", "microseconds")[:26]


def sql_time(time: datetime) -> datetime | str:
    """Return a time as a parameter of a statement that Django's models do not make."""
    return time if on_postgres() else sqlite_time(time)
