"""Deleting on an operator's order: older than a time that the operator names, whatever this process's clock says."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from tasks_app.operators.audit import Operator, record_purge
from tasks_app.upkeep.deletion import Deletion
from tasks_app.upkeep.row_kinds import ROW_KINDS, RowKind

log = logging.getLogger(__name__)


class Purge:
    """One order of an operator, which is one act."""

    def __init__(self, bounds: Mapping[str, datetime], operator: Operator) -> None:
        self.bounds = bounds
        """The times before which rows are deleted, by the kind of row."""
        self.counts = dict.fromkeys(bounds, 0)
        """The number of rows that are deleted, by the kind of row."""
        self._operator = operator

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the act when the work within ends, with what it deleted until then.

        The rows go in many transactions, none of which the act could belong to.
        """
        try:
            yield
        finally:
            rows = {kind: {"before": self.bounds[kind], "deleted": count} for kind, count in self.counts.items()}
            record_purge(self._operator, rows)

    def delete(self, name: str) -> Iterator[int]:
        """Delete the rows of a kind older than its bound; yield their number after each step.

        A pause as long as the step follows it, so that writers get half of the database's time.
        """
        deletion = Deletion(ROW_KINDS[name])
        more = True
        while more:
            step = deletion.delete_next(self.bounds[name], alone=False)
            if step is None:
                break
            more = step.portion.more
            self.counts[name] += step.portion.count
            yield self.counts[name]
            time.sleep(step.seconds if more else 0.0)
        log.info("%s deleted %d %s from before %s", self._operator.name, self.counts[name], name, self.bounds[name])


def count(kind: RowKind, before: datetime) -> int:
    """Return the number of rows to delete."""
    return kind.old(before).count()
