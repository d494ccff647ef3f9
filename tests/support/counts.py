"""Counts of refused calls and last uses of keys, stored when a test looks at them."""

from tasks_app.audit.refused_calls import refused_calls
from tasks_app.callers.last_use import last_uses
from tasks_app.upkeep.counts import count_routine


def store_counts() -> None:
    """Store what this process has counted. Its own routine ends, because it may be storing the same counts now."""
    count_routine.stop()
    refused_calls.flush()
    last_uses.flush()
