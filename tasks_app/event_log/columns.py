"""The columns that statements read of a task's row, named once: a row is read by the names of its columns."""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple


def snapshot_seq(table: str = "t.") -> str:
    """Return the SQL of SNAPSHOT_SEQ for a name of the task's table."""
    return (
        f"case when {table}joined_seq = {table}snapshot_seq or {table}artifacts not like '%%,_\"text\":%%' "
        f"then {table}snapshot_seq else 0 end"
    )


SNAPSHOT_SEQ = snapshot_seq()
"""SQL for the event up to which the snapshot of task t equals the fold of the log; 0 if the snapshot must not be used.

A process of an earlier version stores each text that was appended as a part of its own. Such a snapshot is not used:
the log is folded instead, unless no text follows another part.
"""


def columns(names: Iterable[str], table: str = "t.", **sql: str) -> str:
    """Return the list of columns for a statement. Keyword arguments are the SQL of columns that are computed."""
    return ", ".join(f"{sql[name]} as {name}" if name in sql else table + name for name in names)


class TaskColumns(NamedTuple):
    """The columns from which a task is read."""

    id: str
    context_id: str
    last_seq: int
    state: str
    status: str
    metadata: str | None
    snapshot_seq: int
    """The event up to which the snapshot is right; 0 if the snapshot must not be used."""
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
    budget: int | None
    share: int | None
    spent: int
    reserved: int

    @property
    def has_tail(self) -> bool:
        """True if there are events after the snapshot."""
        return self.snapshot_seq < self.last_seq


OWN_COLUMNS = columns(TaskColumns._fields, "", fence="attempt", attempt="tries", snapshot_seq=snapshot_seq(""))
"""The columns without an alias of the table: SQLite takes none in what an update returns."""
SMALL = 262_144
"""Characters of the events of a task that is read together with others, at most."""


def small(most: int) -> str:
    """Return the SQL condition of a task whose events have up to `most` characters.

    The size 0 is unknown: a process of a version without the column has stored the task.
    """
    return f"t.size between 1 and {most}"


def is_small(size: int) -> bool:
    """Return whether `small(SMALL)` holds for a task of that size."""
    return 0 < size <= SMALL


@cache
def task_columns(*, history: bool = True, only_small: bool = False) -> str:
    """Return the columns of a task, without its history, or without the texts of a task that is not small."""
    names = {"fence": "t.attempt", "attempt": "t.tries"}
    texts = {"artifacts": "t.artifacts", "history": "t.history" if history else "null"}
    if not only_small:
        return columns(TaskColumns._fields, snapshot_seq=SNAPSHOT_SEQ, **names, **texts)
    # No column of a large task may need a look at its texts.
    small_texts = {name: f"case when {small(SMALL)} then {sql} end" for name, sql in texts.items()}
    usable = f"case when {small(SMALL)} then {SNAPSHOT_SEQ} else t.snapshot_seq end"
    return columns(TaskColumns._fields, snapshot_seq=usable, **names, **small_texts)


class SnapshotColumns(NamedTuple):
    """The snapshot in a task's row. All columns are null if it must not be used."""

    snapshot_seq: int
    snapshot_status: str
    metadata: str | None
    artifacts: str
    history: str
