"""Pages of tasks: keyset paging, signed tokens bound to caller and filters, bounded totals (A2A 1.0, 3.1.4)."""

import hashlib
import re
from datetime import datetime
from typing import Any

import orjson
from django.core import signing
from django.db.models import Q, QuerySet
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
_SALT = "tasks_app.pages"


def page_of(request: ListTasks, caller: Caller, agent: str | None) -> TaskPage:
    """One page, newest status first, ties by id. Raises InvalidParams for a token that is not of this list."""
    matches = _matches(request, caller, agent)
    binding = _binding(request, caller, agent)
    rows = matches.order_by("-status_at", "id")
    if request.page_token:
        at, last_id = _place(request.page_token, binding)
        rows = rows.filter(Q(status_at__lt=at) | Q(status_at=at, id__gt=last_id), status_at__lte=at)
    names = [
        "id",
        "context_id",
        "last_seq",
        "state",
        "status",
        "metadata",
        "snapshot_seq",
        "snapshot_status",
        "history",
        "status_at",
    ]
    if request.include_artifacts:
        names.append("artifacts")
    found = list(rows.values(*names)[: request.page_size + 1])
    shown = found[: request.page_size]
    token = ""
    if len(found) > len(shown):
        token = signing.dumps([shown[-1]["status_at"].isoformat(), shown[-1]["id"], binding], salt=_SALT, compress=True)
    return TaskPage(
        tasks=_documents(shown, request.include_artifacts),
        next_page_token=token,
        total_size=_total(matches),
        history_length=request.history_length,
        include_artifacts=request.include_artifacts,
    )


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
            metadata=row["metadata"], artifacts=row.get("artifacts"), history=row["history"],
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
