"""The number of tasks in a list: exact while they are few, and above that an estimate that is used for some seconds.

An exact count on each call would grow with the table.
"""

import re
import time

from django.db import connection
from msgspec.structs import replace

from tasks_app.database.keyset import Parameter
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import on_postgres
from tasks_app.models import Task
from tasks_app.operations.list_filters import STATES, Filters

EXACT = 1_000
"""Totals up to this are exact."""
ESTIMATE_SECONDS = 5.0
"""Seconds for which an estimate is used."""
MOST_ESTIMATES = 1_000
"""Estimates in the memory of a process. With more than these it forgets all of them."""
_TASK = Task._meta.db_table
_estimates: dict[str, tuple[float, int]] = {}
"""The end of each estimate on the monotonic clock, and the estimate, by the binding of the list."""


def find_leader(filters: Filters) -> Filters:
    """Return the filters with the one that leads where both agent and context are set.

    Most tasks of a context have one agent, so the range of the context is read in order and soon fills a page. The
    range of the agent is better only if it has few tasks.
    """
    if filters.agent is None or filters.context_id is None:
        return filters
    of_agent = replace(filters, context_id=None, state=None, since=None)
    return replace(filters, leader="context" if count_tasks(of_agent, of_agent.binding()) > EXACT else "agent")


def count_tasks(filters: Filters, binding: str) -> int:
    """Return the number of tasks in the list, or an estimate of it."""
    now = time.monotonic()
    until, total = _estimates.get(binding, (0.0, 0))
    if now < until:
        return total
    number = _count(filters, EXACT + 1)
    if number <= EXACT:
        return number
    total = max(number, _estimate(filters) if on_postgres() else _count(filters, _most(filters)))
    if len(_estimates) >= MOST_ESTIMATES:
        _estimates.clear()
    _estimates[binding] = now + ESTIMATE_SECONDS, total
    return total


def _most(filters: Filters) -> int:
    """Return the number up to which SQLite counts, which has no estimates.

    Its index entries are in the cache of this process, where a hundred thousand take a few milliseconds. Rows that must
    be looked up take longer.
    """
    return EXACT * (10 if filters.agent and filters.context_id else 100)


def _select(filters: Filters) -> tuple[str, list[Parameter]]:
    """Return a statement with a row for each task, and its parameters.

    It leaves out the tenant, which follows from the owner, so that an index alone answers it.
    """
    where, values = replace(filters, tenant_id=None).conditions()
    if filters.state is not None:
        where, values = f"{where} and t.state = %s", [*values, filters.state]
    return f"select 1 from {_TASK} t where {where}", values


def _count(filters: Filters, most: int) -> int:
    """Count tasks, up to `most`."""
    if filters.since is not None and filters.state is None:
        # In every index by owner the time comes after the state.
        parts = [_select(replace(filters, state=state)) for state in STATES]
    else:
        parts = [_select(filters)]
    rows = " union all ".join(statement for statement, _ in parts)
    with prepared() as cursor:
        cursor.execute(
            f"select count(*) from ({rows} limit %s) matching",
            [*(value for _, values in parts for value in values), most],
        )
        (number,) = cursor.fetchone()
    return int(number)


def _estimate(filters: Filters) -> int:
    """Return PostgreSQL's own estimate of the number of rows, from its statistics."""
    statement, values = _select(replace(filters, leader=""))
    with connection.cursor() as cursor:
        cursor.execute(f"explain {statement}", values)
        plan = cursor.fetchone()[0]
    rows = re.search(r"rows=(\d+)", plan)
    return int(rows[1]) if rows else 0
