"""The columns that statements read of a task's row: named once, so that no place in a row has a meaning of its own."""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from tasks_app.database.rows import SNAPSHOT_SEQ, snapshot_seq


def columns(names: Iterable[str], table: str = "t.", **sql: str) -> str:
    """Return the list of columns for a statement; a column with SQL of its own is computed by it."""
    return ", ".join(f"{sql[name]} as {name}" if name in sql else table + name for name in names)


class TaskColumns(NamedTuple):
    """A task's row, as far as a task is read from it."""

    id: str
    context_id: str
    last_seq: int
    state: str
    status: str
    metadata: str | None
    snapshot_seq: int
    """The event up to which the snapshot may be used: 0 where it is not to be used at all."""
    snapshot_status: str
    artifacts: str | None
    history: str | None
    agent: str
    owner_id: int
    tenant_id: int
    fence: int
    attempt: int
    max_attempts: int
    timeout: float
    wants: str
    pushes: bool
    run_seq: int | None
    size: int

    @property
    def has_tail(self) -> bool:
        """Whether there are events after the snapshot."""
        return self.snapshot_seq < self.last_seq


OWN_COLUMNS = columns(TaskColumns._fields, "", fence="attempt", attempt="tries", snapshot_seq=snapshot_seq(""))
"""The columns where SQLite takes no alias of the table: what an update returns."""
SMALL = 262_144
"""Characters of a task's events up to which it is read together with others."""


@cache
def task_columns(*, history: bool = True, small: bool = False) -> str:
    """Return the columns of a task, without its history, or without the texts of a task that is not small."""
    names = {"fence": "t.attempt", "attempt": "t.tries"}
    texts = {"artifacts": "t.artifacts", "history": "t.history" if history else "null"}
    if not small:
        return columns(TaskColumns._fields, snapshot_seq=SNAPSHOT_SEQ, **names, **texts)
    # Of a large one nothing is read that needs a look at its texts.
    fitting = {name: f"case when t.size <= {SMALL} then {sql} end" for name, sql in texts.items()}
    usable = f"case when t.size <= {SMALL} then {SNAPSHOT_SEQ} else t.snapshot_seq end"
    return columns(TaskColumns._fields, snapshot_seq=usable, **names, **fitting)


class SnapshotColumns(NamedTuple):
    """The snapshot in a task's row; all None for one that is not to be used."""

    snapshot_seq: int
    snapshot_status: str
    metadata: str | None
    artifacts: str
    history: str
