"""The rows of a page of tasks.

Every index of tasks by owner has the state before the time. With a state, a page is one range of an index. Without one
it is merged from the beginnings of the ranges of all states. So tasks are found at once, however rare their state is
among the tasks of their owner, and there are no more indexes to write than a list by time alone would need.
"""

from datetime import UTC, datetime, timedelta
from functools import cache

from msgspec import Struct

from a2a.requests import ListTasks
from tasks_app.database.keyset import Keyset, Position
from tasks_app.database.prepared import prepared
from tasks_app.database.rows import SNAPSHOT_SEQ, on_postgres
from tasks_app.event_log.columns import columns
from tasks_app.event_log.read import one_of
from tasks_app.models import Task
from tasks_app.operations.list_filters import STATES, Filters

PAGE_BYTES = 2_000_000
"""Bytes of artifacts and history after which a page ends."""
SMALL_BYTES = 20_000
"""Bytes of a small task. The largest page of small tasks has PAGE_BYTES."""
NEWEST_FIRST = Keyset(
    time="status_at",
    newest_first=True,
    salt="tasks_app.pages",
    mismatch="belongs to a list with other filters; begin again without it",
)
"""The order of a list of tasks: by the time of the status, then by id."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TASK = Task._meta.db_table
_EMPTY = "'[]'"
_ORDER = "order by t.status_at desc, t.id limit %s"
_ORDER_OF_ROWS = "order by at desc, id limit %s"


class Row(Struct, frozen=True):
    """A task of a page; its members are columns. The texts of a large task are None until a second statement."""

    id: str
    context_id: str
    last_seq: int
    state: str
    status: str
    metadata: str | None
    snapshot_seq: int
    snapshot_status: str
    at: int | str
    """The time of the status: microseconds on PostgreSQL, whose times are slow to decode, and text on SQLite."""
    octets: int
    history: str | None
    artifacts: str | None

    @property
    def is_large(self) -> bool:
        return self.octets > SMALL_BYTES

    @property
    def position(self) -> Position:
        at = self.at
        moment = EPOCH + timedelta(microseconds=at) if isinstance(at, int) else datetime.fromisoformat(f"{at}+00:00")
        return Position(moment, self.id)


def read_page(request: ListTasks, filters: Filters, start: Position | None) -> tuple[list[Row], Position | None]:
    """Return the rows of the page behind `start`, and the position of its last row if others follow.

    A page ends at PAGE_BYTES, with at least one task. The first statement reads small tasks whole, and only the size of
    a large one. A second statement reads the large tasks of the page, so that no page takes more memory than it shows.
    """
    rows = _read_rows(request, filters, start)
    total, end = 0, 0
    for row in rows[: request.page_size]:
        total += row.octets
        if end and total > PAGE_BYTES:
            break
        end += 1
    page = rows[:end]
    last = page[-1].position if len(rows) > end else None
    return _read_texts(request, page) if any(row.is_large for row in page) else page, last


def _read_rows(request: ListTasks, filters: Filters, start: Position | None) -> list[Row]:
    """Return the rows of the page, and one more if there are more."""
    column_list = _columns(request.history_length != 0, request.include_artifacts, SMALL_BYTES)
    where, values = filters.conditions()
    if start is not None:
        condition, bounds = NEWEST_FIRST.sql_after(start, "t")
        where, values = f"{where} and {condition}", [*values, *bounds]
    limit = request.page_size + 1
    if filters.state is not None:
        statement, values = _one_state(column_list, where), [filters.state, *values, limit]
    elif on_postgres():
        statement, values = _all_states(column_list, where), [STATES, *values, limit, limit]
    else:
        each = [value for state in STATES for value in (state, *values, limit)]
        statement, values = _union(column_list, where), [*each, limit]
    with prepared() as cursor:
        cursor.execute(statement, values)
        return [Row(*row) for row in cursor.fetchall()]


def _read_texts(request: ListTasks, rows: list[Row]) -> list[Row]:
    """Read the large rows again, with their texts. A row that was deleted since is left out."""
    where, values = one_of("t.id", [row.id for row in rows if row.is_large])
    column_list = _columns(request.history_length != 0, request.include_artifacts, None)
    with prepared() as cursor:
        cursor.execute(f"select {column_list} from {_TASK} t where {where}", values)
        large = {row.id: row for row in (Row(*values) for values in cursor.fetchall())}
    return [whole for row in rows if (whole := large.get(row.id) if row.is_large else row) is not None]


@cache
def _columns(history: bool, artifacts: bool, most: int | None) -> str:
    """Return the list of columns of a Row, without texts of more bytes than `most`."""
    texts = {"t.history": history, "t.artifacts": artifacts}
    # Both databases find the length of a text without reading it.
    octets = "octet_length({})" if on_postgres() else "length(cast({} as blob))"
    size = " + ".join(octets.format(text) for text, is_shown in texts.items() if is_shown) or "0"
    small = f"{size} <= {most}" if most is not None else "true"
    read = [f"case when {small} then {text} end" if is_shown else _EMPTY for text, is_shown in texts.items()]
    at = "(extract(epoch from t.status_at) * 1000000)::bigint" if on_postgres() else "t.status_at"
    return columns(
        Row.__struct_fields__,
        snapshot_seq=SNAPSHOT_SEQ if artifacts else "t.snapshot_seq",
        # The status of the snapshot matters only where the last events are not in the snapshot.
        snapshot_status="case when t.snapshot_seq < t.last_seq then t.snapshot_status else '' end",
        at=at,
        octets=size,
        history=read[0],
        artifacts=read[1],
    )


@cache
def _one_state(column_list: str, where: str) -> str:
    return f"select {column_list} from {_TASK} t where t.state = %s and {where} {_ORDER}"


@cache
def _all_states(column_list: str, where: str) -> str:
    """Return the statement for PostgreSQL: the newest tasks of each state, and the newest of those.

    A union would give the same rows, but takes longer to plan.
    """
    newest = f"select {column_list} from {_TASK} t where t.state = s.state and {where} {_ORDER}"
    return f"select t.* from unnest(%s::text[]) s(state) cross join lateral ({newest}) t {_ORDER_OF_ROWS}"


@cache
def _union(column_list: str, where: str) -> str:
    """Return the statement for SQLite, which has no lateral joins."""
    newest = f"select * from (select {column_list} from {_TASK} t where t.state = %s and {where} {_ORDER})"
    return f"select * from ({' union all '.join([newest] * len(STATES))}) {_ORDER_OF_ROWS}"
