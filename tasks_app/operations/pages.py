"""Pages of tasks: keyset paging, signed tokens bound to caller and filters, bounded totals (A2A 1.0, 3.1.4)."""

import hashlib
import re
from datetime import datetime
from functools import reduce
from operator import add
from typing import Any

import orjson
from django.core import signing
from django.db.models import Case, F, Func, IntegerField, Q, QuerySet, Value, When
from msgspec.structs import replace

from a2a.dialects.shape import TaskPage
from a2a.documents import TaskDocument
from a2a.errors import InvalidParams
from a2a.requests import ListTasks
from tasks_app.access import Caller, visible
from tasks_app.event_log import fold, read_tails
from tasks_app.models import Task
from tasks_app.rows import on_postgres

EXACT = 1_000
"""Totals are exact up to this, and an estimate above: counting everything on each call grows with the table."""
PAGE_BYTES = 2_000_000
"""Bytes of artifacts and history after which a page ends."""
SMALL = 20_000
"""Bytes of a small task: as many of them as a page may have are not more than PAGE_BYTES."""
_COLUMNS = (
    "id", "context_id", "last_seq", "state", "status", "metadata", "snapshot_seq", "snapshot_status", "status_at",
)  # fmt: skip
Columns = dict[str, Any]
_SALT = "tasks_app.pages"


def page_of(request: ListTasks, caller: Caller, agent: str | None) -> TaskPage:
    """One page, newest status first, ties by id. Raises InvalidParams for a token that is not of this list."""
    matches = _matches(request, caller, agent)
    binding = _binding(request, caller, agent)
    rows = matches.order_by("-status_at", "id")
    if request.page_token:
        at, last_id = _place(request.page_token, binding)
        rows = rows.filter(Q(status_at__lt=at) | Q(status_at=at, id__gt=last_id), status_at__lte=at)
    shown, last = _within_bytes(rows, request)
    token = ""
    if last:
        token = signing.dumps([last["status_at"].isoformat(), last["id"], binding], salt=_SALT, compress=True)
    return TaskPage(
        tasks=_documents(shown, request.include_artifacts),
        next_page_token=token,
        total_size=_total(matches),
        history_length=request.history_length,
        include_artifacts=request.include_artifacts,
    )


class _Octets(Func):
    """The bytes of a text, which neither database needs to read for it."""

    function = "octet_length"
    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return super().as_sql(compiler, connection, template="length(cast(%(expressions)s as blob))", **extra)


def _within_bytes(rows: QuerySet[Task], request: ListTasks) -> tuple[list[Columns], Columns | None]:
    """Return the rows of a page, which ends at PAGE_BYTES with one task at least, and the last row if others follow.

    Small tasks come whole with the first statement. Of a large one it gives the size only, so that no page takes more
    memory than it shows: those that are shown are read by a second statement.
    """
    texts = [name for name in ("artifacts", "history") if _shows(request, name)]
    size = reduce(add, map(_Octets, texts)) if texts else Value(0)
    whole = {f"small_{name}": Case(When(octets__lte=SMALL, then=F(name))) for name in texts}
    found = list(rows.annotate(octets=size).values(*_COLUMNS, "octets", **whole)[: request.page_size + 1])
    total, end = 0, 0
    for row in found[: request.page_size]:
        total += row["octets"]
        if end and total > PAGE_BYTES:
            break
        end += 1
    large = [row["id"] for row in found[:end] if row["octets"] > SMALL]
    again = {row["id"]: row for row in Task.objects.filter(pk__in=large).values(*_COLUMNS, *texts)} if large else {}
    shown = [
        again.get(row["id"]) if row["octets"] > SMALL else row | {name: row[f"small_{name}"] for name in texts}
        for row in found[:end]
    ]
    # A large task may have been deleted between the statements.
    return [row for row in shown if row is not None], found[end - 1] if len(found) > end else None


def _shows(request: ListTasks, name: str) -> bool:
    """Return whether the page shows a text of the tasks."""
    return request.include_artifacts if name == "artifacts" else request.history_length != 0


def _matches(request: ListTasks, caller: Caller, agent: str | None) -> QuerySet[Task]:
    matches = visible(caller)
    if agent is not None:
        matches = matches.filter(agent=agent)
    if request.context_id is not None:
        matches = matches.filter(context_id=request.context_id)
    if request.state is not None:
        matches = matches.filter(state=request.state.value)
    if request.since is not None:
        matches = matches.filter(status_at__gte=request.since)
    return matches


def _binding(request: ListTasks, caller: Caller, agent: str | None) -> str:
    """What a token may be used for: the same list of the same caller."""
    since = request.since and request.since.isoformat()
    parts = [caller.tenant_id, caller.owner_id, agent, request.context_id, request.state, since]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()[:16]


def _place(token: str, binding: str) -> tuple[datetime, str]:
    try:
        at, last_id, bound = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError):
        raise InvalidParams(("pageToken", "is not a token of this server; begin again without one")) from None
    if bound != binding:
        raise InvalidParams(("pageToken", "belongs to a list with other filters; begin again without it"))
    return datetime.fromisoformat(at), last_id


def _documents(rows: list[dict[str, Any]], include_artifacts: bool) -> tuple[TaskDocument, ...]:
    """As of each row's last event; the tails of running tasks are read in one statement."""
    tails = read_tails(
        [(row["id"], row["snapshot_seq"], row["last_seq"]) for row in rows if row["snapshot_seq"] < row["last_seq"]]
    )
    out = []
    for row in rows:
        stored = TaskDocument(
            id=row["id"], context_id=row["context_id"], seq=row["last_seq"], state=row["state"], status=row["status"],
            metadata=row["metadata"], artifacts=row.get("artifacts"), history=row.get("history", "[]"),
        )  # fmt: skip
        if tail := tails.get(row["id"]):
            stored = fold(replace(stored, status=row["snapshot_status"]), tail)
        out.append(stored if include_artifacts else replace(stored, artifacts=None))
    return tuple(out)


def _total(matches: QuerySet[Task]) -> int:
    counted = matches.order_by().values("pk")[: EXACT + 1].count()
    if counted <= EXACT:
        return counted
    if not on_postgres():
        # Rows are in the process's own cache: a hundred times as many cost a few milliseconds.
        return matches.order_by().values("pk")[: EXACT * 100].count()
    return max(counted, _planned(matches))


def _planned(matches: QuerySet[Task]) -> int:
    """PostgreSQL's own estimate of the rows, from its statistics."""
    plan = matches.order_by().values("pk").explain()
    rows = re.search(r"rows=(\d+)", plan)
    return int(rows[1]) if rows else 0
