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
from tasks_app.database.sql import on_postgres
from tasks_app.event_log.columns import SNAPSHOT_SEQ, columns, small
from tasks_app.models import Task
from tasks_app.off_loop import Pace
from tasks_app.operations.list_filters import STATES, Filters

PAGE_BYTES = 2_000_000
"""Bytes of artifacts and history after which a page ends."""
MOST_BYTES = 4
"""Bytes of a character in UTF-8, at most."""
SMALL = 20_000
"""Characters of the events of a small task. The largest page of small tasks has about PAGE_BYTES."""
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
    """A task of a page; its members are columns. The texts of a large task are None until it is read by itself."""

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
    size: int
    """Characters of its events: its texts have no more. 0 if they were not counted."""
    history: str | None
    artifacts: str | None

    @property
    def is_large(self) -> bool:
        return self.history is None or self.artifacts is None

    @property
    def octets(self) -> int:
        """Bytes of the texts."""
        texts = (self.history or "", self.artifacts or "")
        return sum(len(text) if text.isascii() else len(text.encode()) for text in texts)

    @property
    def position(self) -> Position:
        at = self.at
        moment = EPOCH + timedelta(microseconds=at) if isinstance(at, int) else datetime.fromisoformat(f"{at}+00:00")
        return Position(moment, self.id)


def find_rows(request: ListTasks, filters: Filters, start: Position | None) -> list[Row]:
    """Return the rows behind `start` that fit on the page, and one more if others follow. Large ones have no texts."""
    column_list = _columns(request.history_length != 0, request.include_artifacts, SMALL)
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


def read_page(request: ListTasks, rows: list[Row]) -> tuple[list[Row], Position | None]:
    """Return the rows of the page with their texts, and the position of the last one if others follow.

    A page ends at PAGE_BYTES, with at least one task. Large tasks are read one at a time, so that no page takes more
    memory than it shows. A task that was deleted since is left out.
    """
    if not any(row.is_large for row in rows) and sum(row.size for row in rows) * MOST_BYTES <= PAGE_BYTES:
        page = rows[: request.page_size]
        return page, page[-1].position if len(rows) > len(page) else None
    shows_all = request.history_length != 0 and request.include_artifacts
    page = []
    total, end = 0, 0
    for row in rows[: request.page_size]:
        if page and shows_all and total + row.size > PAGE_BYTES:
            break
        whole = _read_large(request, row) if row.is_large else row
        total += whole.octets if whole else 0
        if page and total > PAGE_BYTES:
            break
        end += 1
        page += [whole] if whole else []
    return page, rows[end - 1].position if len(rows) > end else None


def _read_large(request: ListTasks, row: Row) -> Row | None:
    """Read a row again, with its texts."""
    pace = Pace()
    column_list = _columns(request.history_length != 0, request.include_artifacts, None)
    with prepared() as cursor:
        cursor.execute(f"select {column_list} from {_TASK} t where t.id = %s", [row.id])
        columns = cursor.fetchone()
    pace.rest()
    return Row(*columns) if columns else None


@cache
def _columns(history: bool, artifacts: bool, most: int | None) -> str:
    """Return the list of columns of a Row, without the texts of tasks that may have more than `most` characters."""
    is_small = small(most) if most is not None else "true"
    texts = {"t.history": history, "t.artifacts": artifacts}
    read = [f"case when {is_small} then {text} end" if is_shown else _EMPTY for text, is_shown in texts.items()]
    # On SQLite an expression, because a column of times is decoded.
    at = "(extract(epoch from t.status_at) * 1000000)::bigint" if on_postgres() else "t.status_at || ''"
    return columns(
        Row.__struct_fields__,
        snapshot_seq=f"case when {is_small} then {SNAPSHOT_SEQ} else t.snapshot_seq end"
        if artifacts
        else "t.snapshot_seq",
        # The status of the snapshot matters only where the last events are not in the snapshot.
        snapshot_status="case when t.snapshot_seq < t.last_seq then t.snapshot_status else '' end",
        at=at,
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
    """Return the statement for SQLite, which has no lateral joins.

    The newest tasks of each state are ordered without their columns, so that only the rows of the page are read whole.
    """
    newest = (
        f"select * from (select t.rowid as place, t.status_at as at, t.id from {_TASK} t "
        f"where t.state = %s and {where} {_ORDER})"
    )
    places = f"select place from ({' union all '.join([newest] * len(STATES))}) {_ORDER_OF_ROWS}"
    return f"select {column_list} from {_TASK} t where t.rowid in ({places}) order by t.status_at desc, t.id"
