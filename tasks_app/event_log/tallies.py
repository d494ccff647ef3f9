"""The numbers of tasks that this process has created and ended, for /metrics. They are counted after the commit."""

from collections.abc import Iterable, Sequence

from a2a.states import TERMINAL
from tasks_app.counters import tasks
from tasks_app.database.rows import TaskRow

CREATED = ("created",)


def count_new(rows: Sequence[TaskRow]) -> None:
    """Count new tasks, and those that ended with their creation."""
    if rows:
        tasks.add(CREATED, len(rows))
        count_ends(row.state for row in rows)


def count_ends(states: Iterable[str | None]) -> None:
    """Count the tasks whose new state ends them."""
    for state in states:
        if state in TERMINAL:
            tasks.add((str(state),))
