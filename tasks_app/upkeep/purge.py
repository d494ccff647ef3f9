"""Deleting on an operator's order: older than a time that the operator names, whatever this process's clock says."""

import time
from collections.abc import Iterator
from datetime import datetime

from tasks_app.upkeep.deletion import Deletion
from tasks_app.upkeep.row_kinds import RowKind


def purge(kind: RowKind, before: datetime) -> Iterator[int]:
    """Delete the rows of a kind older than the time; yield the number of rows of each step.

    A pause as long as the step follows it, so that writers get half of the database's time.
    """
    deletion = Deletion(kind)
    more = True
    while more:
        step = deletion.delete_next(before, alone=False)
        if step is None:
            return
        more = step.portion.more
        yield step.portion.count
        time.sleep(step.seconds if more else 0.0)


def count(kind: RowKind, before: datetime) -> int:
    """Return the number of rows to delete."""
    return kind.old(before).count()
