"""Pages of tasks: keyset paging, signed tokens bound to caller and filters, bounded totals (A2A 1.0, 3.1.4).

Every index of tasks by owner has the state before the time: with a state a page is one range of it, and without one the
beginnings of the ranges of all states, put together. So whatever is rare among an owner's tasks is found at once, with
no more indexes to write than a list by time alone would need.
"""

import hashlib
import re
import time
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import orjson
from django.core import signing
from django.db import connection
from msgspec import Struct
from msgspec.structs import replace

from a2a.answers import TaskPage
from a2a.documents import TaskDocument
from a2a.errors import InvalidParams
from a2a.requests import ListTasks
from a2a.states import TaskState
from tasks_app.callers.access import Caller
from tasks_app.database.prepared import prepared
from tasks_app.database.rows import SNAPSHOT_SEQ, on_postgres, sqlite_time
from tasks_app.event_log import fold, read_tails
from tasks_app.event_log.columns import columns
from tasks_app.event_log.read import one_of
from tasks_app.models import Task

EXACT = 1_000
"""Totals are exact up to this, and an estimate above: counting everything on each call grows with the table."""
PAGE_BYTES = 2_000_000
"""Bytes of artifacts and history after which a page ends."""
SMALL = 20_000
"""Bytes of a small task: as many of them as a page may have are not more than PAGE_BYTES."""
ESTIMATED_SECONDS = 5.0
"""How long an estimate is good."""
MOST_ESTIMATES = 1_000
"""Estimates that a process keeps."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SALT = "tasks_app.pages"
_TASK = Task._meta.db_table
_HIDDEN = "%s || ''"
"""Keeps a column from being looked up in an index: databases take conditions for independent, and guess wrong."""


class Row(Struct, frozen=True):
    """A task of a page; its members are columns. The texts are None where they are large and not read yet."""

    id: str
    context_id: str
    last_seq: int
    state: str
    status: str
    metadata: str | None
    snapshot_seq: int
    snapshot_status: str
    at: int | str
    """The time of the status: microseconds on PostgreSQL, whose times are dear to read, and text on SQLite."""
    octets: int
    history: str | None
    artifacts: str | None


class Filters(Struct, frozen=True, kw_only=True):
    """The filters of a list."""

    tenant_id: int | None
    owner_id: int
    agent: str | None
    context_id: str | None
    state: str | None
    since: datetime | None
    leads: str = ""
    """Whose range is read where both agent and context are given, which no one index has: agent or context."""

    def parts(self) -> tuple[str, list[Any]]:
        """Return the SQL of all but the state, and its parameters."""
        found = {
            "t.owner_id = %s": self.owner_id,
            "t.tenant_id = %s": self.tenant_id,
            f"{'t.agent' if self.leads != 'context' else _HIDDEN % 't.agent'} = %s": self.agent,
            f"{'t.context_id' if self.leads != 'agent' else _HIDDEN % 't.context_id'} = %s": self.context_id,
            "t.status_at >= %s": _time(self.since),
        }
        wanted = {sql: value for sql, value in found.items() if value is not None}
        return " and ".join(wanted), list(wanted.values())


def page_of(request: ListTasks, caller: Caller, agent: str | None) -> TaskPage:
    """One page, newest status first, ties by id. Raises InvalidParams for a token that is not of this list."""
    filters = Filters(
        tenant_id=caller.tenant_id, owner_id=caller.owner_id, agent=agent, context_id=request.context_id,
        state=request.state and request.state.value, since=request.since,
    )  # fmt: skip
    binding = _binding(filters)
    if agent is not None and request.context_id is not None:
        filters = replace(filters, leads=_leading(filters))
    place = _place(request.page_token, binding) if request.page_token else None
    shown, last = _within_bytes(request, _rows(request, filters, place))
    token = ""
    if last:
        where = [_moment(last.at).isoformat(), last.id, binding]
        token = signing.dumps(where, salt=_SALT, compress=True)
    whole = place is None and not token
    return TaskPage(
        tasks=_documents(shown, request.include_artifacts),
        next_page_token=token,
        total_size=len(shown) if whole else _total(filters, binding),
        history_length=request.history_length,
        include_artifacts=request.include_artifacts,
    )


def _leading(filters: Filters) -> str:
    """A context is mostly of one agent, so its range is read in order and ends soon; unless the agent has few tasks."""
    of_agent = _counted(replace(filters, context_id=None, state=None, since=None), EXACT + 1)
    return "context" if of_agent > EXACT else "agent"


def _binding(filters: Filters) -> str:
    """Return what binds a page token to one list of one caller."""
    since = filters.since and filters.since.isoformat()
    parts = [filters.tenant_id, filters.owner_id, filters.agent, filters.context_id, filters.state, since]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()[:16]


def _place(token: str, binding: str) -> tuple[datetime, str]:
    try:
        at, last_id, bound = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError):
        raise InvalidParams(("pageToken", "is not a token of this server; begin again without one")) from None
    if bound != binding:
        raise InvalidParams(("pageToken", "belongs to a list with other filters; begin again without it"))
    return datetime.fromisoformat(at), last_id


def _time(at: datetime | None) -> Any:
    """The time as the database has it."""
    return at if at is None or on_postgres() else sqlite_time(at)


def _moment(at: int | str) -> datetime:
    """The time of a row."""
    return EPOCH + timedelta(microseconds=at) if isinstance(at, int) else datetime.fromisoformat(f"{at}+00:00")


# ------------------------------------------------------------------------ rows


def _rows(request: ListTasks, filters: Filters, place: tuple[datetime, str] | None) -> list[Row]:
    """The rows of the page, and one more if there are more."""
    selected = _columns(request.history_length != 0, request.include_artifacts, SMALL)
    where, values = filters.parts()
    if place is not None:
        where += " and t.status_at <= %s and (t.status_at < %s or t.id > %s)"
        at = _time(place[0])
        values += [at, at, place[1]]
    limit = request.page_size + 1
    if filters.state is not None:
        statement, values = _one_state(selected, where), [filters.state, *values, limit]
    elif on_postgres():
        statement, values = _all_states(selected, where), [_STATES, *values, limit, limit]
    else:
        each = [value for state in _STATES for value in (state, *values, limit)]
        statement, values = _union(selected, where), [*each, limit]
    with prepared() as cursor:
        cursor.execute(statement, values)
        return [Row(*row) for row in cursor.fetchall()]


@cache
def _columns(history: bool, artifacts: bool, most: int | None) -> str:
    """The columns of a Row; texts of more bytes than that are left out."""
    texts = {"t.history": history, "t.artifacts": artifacts}
    # Neither database needs to read a text for its length.
    octets = "octet_length({})" if on_postgres() else "length(cast({} as blob))"
    size = " + ".join(octets.format(text) for text, shown in texts.items() if shown) or "0"
    small = f"{size} <= {most}" if most is not None else "true"
    read = [f"case when {small} then {text} end" if shown else _EMPTY for text, shown in texts.items()]
    at = "(extract(epoch from t.status_at) * 1000000)::bigint" if on_postgres() else "t.status_at"
    return columns(
        Row.__struct_fields__,
        snapshot_seq=SNAPSHOT_SEQ if artifacts else "t.snapshot_seq",
        # Only of a task whose last events are not in its snapshot.
        snapshot_status="case when t.snapshot_seq < t.last_seq then t.snapshot_status else '' end",
        at=at,
        octets=size,
        history=read[0],
        artifacts=read[1],
    )


def _within_bytes(request: ListTasks, found: list[Row]) -> tuple[list[Row], Row | None]:
    """Return the rows of a page, which ends at PAGE_BYTES with one task at least, and the last row if others follow.

    Small tasks come whole with the first statement. Of a large one it gives the size only, so that no page takes more
    memory than it shows: those that are shown are read by a second statement.
    """
    total, end = 0, 0
    for row in found[: request.page_size]:
        total += row.octets
        if end and total > PAGE_BYTES:
            break
        end += 1
    shown, last = found[:end], found[end - 1] if len(found) > end else None
    if any(row.octets > SMALL for row in shown):
        shown = _with_texts(request, shown)
    return shown, last


def _with_texts(request: ListTasks, rows: list[Row]) -> list[Row]:
    """Return the rows, the large ones read again; one that was deleted since is left out."""
    where, values = one_of("t.id", [row.id for row in rows if row.octets > SMALL])
    selected = _columns(request.history_length != 0, request.include_artifacts, None)
    with prepared() as cursor:
        cursor.execute(f"select {selected} from {_TASK} t where {where}", values)
        again = {row.id: row for row in (Row(*found) for found in cursor.fetchall())}
    whole = [again.get(row.id) if row.octets > SMALL else row for row in rows]
    return [row for row in whole if row is not None]


_STATES = [state.value for state in TaskState]
_EMPTY = "'[]'"
_ORDER = "order by t.status_at desc, t.id limit %s"
_ORDER_OF_ROWS = "order by at desc, id limit %s"


@cache
def _one_state(selected: str, where: str) -> str:
    return f"select {selected} from {_TASK} t where t.state = %s and {where} {_ORDER}"


@cache
def _all_states(selected: str, where: str) -> str:
    """The newest of each state, and of those the newest. A union says the same, but takes longer to plan."""
    newest = f"select {selected} from {_TASK} t where t.state = s.state and {where} {_ORDER}"
    return f"select t.* from unnest(%s::text[]) s(state) cross join lateral ({newest}) t {_ORDER_OF_ROWS}"


@cache
def _union(selected: str, where: str) -> str:
    """Return the statement for SQLite, which has no lateral joins."""
    newest = f"select * from (select {selected} from {_TASK} t where t.state = %s and {where} {_ORDER})"
    return f"select * from ({' union all '.join([newest] * len(_STATES))}) {_ORDER_OF_ROWS}"


def _documents(rows: list[Row], include_artifacts: bool) -> tuple[TaskDocument, ...]:
    """Return the documents as of each row's last event. The tails of running tasks are read in one statement."""
    tails = read_tails([(row.id, row.snapshot_seq, row.last_seq) for row in rows if row.snapshot_seq < row.last_seq])
    out = []
    for row in rows:
        stored = TaskDocument(
            id=row.id, context_id=row.context_id, seq=row.last_seq, state=row.state, status=row.status,
            metadata=row.metadata, artifacts=row.artifacts if include_artifacts else None, history=row.history,
        )  # fmt: skip
        if tail := tails.get(row.id):
            stored = fold(replace(stored, status=row.snapshot_status or row.status), tail)
            if not include_artifacts:
                stored = replace(stored, artifacts=None)
        out.append(stored)
    return tuple(out)


# ---------------------------------------------------------------------- totals

_estimates: dict[str, tuple[float, int]] = {}
"""Until when an estimate is good, and what it is."""


def _total(filters: Filters, binding: str) -> int:
    """How many tasks the list has: exact while they are few, and an estimate that is kept for a while."""
    now = time.monotonic()
    good_until, total = _estimates.get(binding, (0.0, 0))
    if now < good_until:
        return total
    counted = _counted(filters, EXACT + 1)
    if counted <= EXACT:
        return counted
    total = max(counted, _planned(filters) if on_postgres() else _counted(filters, _most(filters)))
    if len(_estimates) >= MOST_ESTIMATES:
        _estimates.clear()
    _estimates[binding] = now + ESTIMATED_SECONDS, total
    return total


def _most(filters: Filters) -> int:
    """How far is counted on SQLite, which estimates nothing: index entries are in the process's own cache, and a
    hundred thousand cost a few milliseconds; rows that must be looked at cost more."""
    return EXACT * (10 if filters.agent and filters.context_id else 100)


def _matching(filters: Filters) -> tuple[str, list[Any]]:
    """Return the condition of the count, answered by an index alone: it has no tenants, and an owner has one tenant."""
    where, values = replace(filters, tenant_id=None).parts()
    if filters.state is not None:
        where, values = f"{where} and t.state = %s", [*values, filters.state]
    return f"select 1 from {_TASK} t where {where}", values


def _counted(filters: Filters, most: int) -> int:
    if filters.since is not None and filters.state is None:
        # In every index by owner the time comes after the state.
        each = [_matching(replace(filters, state=state)) for state in _STATES]
    else:
        each = [_matching(filters)]
    rows = " union all ".join(rows for rows, _ in each)
    with prepared() as cursor:
        cursor.execute(
            f"select count(*) from ({rows} limit %s) matching",
            [*(value for _, values in each for value in values), most],
        )
        (counted,) = cursor.fetchone()
    return int(counted)


def _planned(filters: Filters) -> int:
    """PostgreSQL's own estimate of the rows, from its statistics."""
    rows, values = _matching(replace(filters, leads=""))
    with connection.cursor() as cursor:
        cursor.execute(f"explain {rows}", values)
        plan = cursor.fetchone()[0]
    found = re.search(r"rows=(\d+)", plan)
    return int(found[1]) if found else 0
