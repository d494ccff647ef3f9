"""Rows that are written in groups, and how each database writes them.

PostgreSQL takes a whole table's rows as one JSON parameter, so that several tables fit into one statement; SQLite,
which is in the process, takes them one by one.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from django.db import models
from django.db.backends.utils import CursorWrapper
from msgspec import Struct

from a2a.documents import EventKind
from tasks_app.database.sql import on_postgres, sqlite_time
from tasks_app.masking import mask_trace
from tasks_app.models import (
    Act,
    AuditEntry,
    Delivery,
    DirectReply,
    Event,
    Exchange,
    ExchangeBody,
    File,
    IdempotencyKey,
    RelayedTask,
    Reservation,
    Run,
    RunSecret,
    Task,
    Usage,
    Webhook,
)
from tasks_app.models.states import DeliveryState, WebhookState


class Row(Struct, kw_only=True, gc=False):
    """A row of any table. `n` is the place of its item in the group, not a column; other fields are columns."""

    n: int = 0


class KeyRow(Row, kw_only=True, gc=False):
    owner_id: int
    key: str
    fingerprint: str
    task_id: str | None
    turn_id: str | None
    """The direct reply, for a message without a task."""
    created_at: datetime


class TaskRow(Row, kw_only=True, gc=False, rename={"fence": "attempt", "attempt": "tries"}):
    id: str
    tenant_id: int
    owner_id: int
    context_id: str
    agent: str
    state: str
    status: str
    status_at: datetime
    last_seq: int
    metadata: str | None
    snapshot_seq: int
    snapshot_status: str
    artifacts: str
    history: str
    queue: str
    priority: int
    timeout: float
    max_attempts: int
    created_at: datetime
    joined_seq: int | None = None
    attempt: int = 0
    fence: int = 0
    wants: str = ""
    pushes: bool = False
    size: int = 0
    messages: int = 0
    budget: int | None = None
    share: int | None = None
    spent: int = 0
    reserved: int = 0


class EventRow(Row, kw_only=True, gc=False, rename={"fence": "attempt"}):
    task_id: str
    seq: int
    """Before an append numbers it: the place among the events of its change, counted from 1."""
    kind: EventKind
    payload: str
    state: str | None
    actor: str
    created_at: datetime
    exchange_id: str | None = None
    fence: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        self.size = len(self.payload)


class DirectReplyRow(Row, kw_only=True, gc=False):
    id: str
    owner_id: int
    context_id: str
    message: str
    reply: str
    created_at: datetime


class RunRow(Row, kw_only=True, gc=False, rename={"fence": "number"}):
    task_id: str
    fence: int
    worker: str
    started_at: datetime | None
    ended_at: datetime
    outcome: str
    reference: str = ""
    traceback: str = ""

    def __post_init__(self) -> None:
        # Every traceback passes here on its way to the database.
        if self.traceback:
            self.traceback = mask_trace(self.traceback)


class ExchangeRow(Row, kw_only=True, gc=False):
    id: str
    request_id: str
    rpc_id: str | None
    rpc_id_type: str
    door: str
    created_at: datetime
    envelope: str | None = None
    dialect: str = ""
    version: str = ""
    method: str = ""
    caller_id: int | None = None
    tenant_id: int | None = None
    task_id: str | None = None
    context_id: str | None = None
    peer: str | None = None
    trace: str = ""
    outcome: str = ""
    code: int | None = None
    http_status: int | None = None
    duration_us: int | None = None
    request_bytes: int = 0
    response_bytes: int = 0
    frames: int = 0
    first_seq: int | None = None
    last_seq: int | None = None


class AuditRow(Row, kw_only=True, gc=False):
    id: str
    created_at: datetime
    caller_id: int
    caller: str
    tenant_id: int
    tenant: str
    credential: str
    peer: str | None
    door: str
    language: str
    method: str
    task_id: str | None
    outcome: str
    exchange_id: str
    trace: str
    webhook: str = ""
    code: int | None = None


class ActRow(Row, kw_only=True, gc=False):
    at: datetime
    operator: str
    door: str
    verb: str
    kind: str
    object_id: str
    name: str
    before: str
    after: str
    reason: str
    peer: str | None
    trace: str | None
    tenant_id: int | None


class FileRow(Row, kw_only=True, gc=False):
    id: str
    holder: str
    name: str
    media_type: str
    size: int
    digest: str
    created_at: datetime


class PositionRow(Row, kw_only=True, gc=False):
    task_id: str
    position: str


class ReservationRow(Row, kw_only=True, gc=False):
    task_id: str
    budget_id: int
    amount: int
    orphan_at: datetime | None = None


class WebhookRow(Row, kw_only=True, gc=False, rename={"name": "config_id"}):
    id: str
    task_id: str
    name: str
    """The id that its owner chose."""
    version: str
    url: str
    address: str
    key_id: int | None
    host: str
    schemes: str
    token: str
    credentials: str
    secret: str
    due_at: datetime | None
    created_at: datetime
    updated_at: datetime
    caller_credential: str | None = None
    evidence_at: datetime | None = None
    language: str | None = None
    notices: int | None = None
    state: str = WebhookState.ACTIVE.value
    reason: str = ""


class DeliveryRow(Row, kw_only=True, gc=False, rename={"webhook_id": "config_id", "attempt": "tries"}):
    id: str
    webhook_id: str
    task_id: str
    seq: int
    version: str
    created_at: datetime
    language: str | None = None
    interim: bool = False
    state: str = DeliveryState.WAITING.value
    attempt: int = 0
    error: str = ""


class UsageRow(Row, kw_only=True, gc=False):
    id: str
    created_at: datetime
    tenant_id: int
    owner_id: int
    correlation_id: str
    channel: str
    task_id: str = ""
    outcome: str = "executed"
    skipped: str = ""


class SecretRow(Row, kw_only=True, gc=False):
    key: str
    sealed: str
    expires_at: datetime


class BodyRow(Row, kw_only=True, gc=False):
    exchange_id: str
    request: str
    response: str = ""


SQL_TYPES = {str: "text", int: "bigint", bool: "boolean", float: "double precision", datetime: "timestamptz"}


class Table:
    """The statements that write the rows of one kind."""

    def __init__(self, model: type[models.Model], row: type[Row], conflict: str = "") -> None:
        hints = get_type_hints(row)
        names = zip(row.__struct_fields__, row.__struct_encode_fields__, strict=True)
        pairs = [(field, column) for field, column in names if field != "n"]
        kinds = {column: _plain(hints[field]) for field, column in pairs}
        self.name = model._meta.db_table
        self.conflict = conflict
        self.fields = tuple(field for field, _ in pairs)
        """The names of the columns in Python: those of the model's fields."""
        self.columns = tuple(kinds)
        self._times = tuple(place for place, kind in enumerate(kinds.values()) if kind is datetime)
        self.list = ", ".join(self.columns)
        self.record = "n bigint, " + ", ".join(f"{name} {SQL_TYPES[kind]}" for name, kind in kinds.items())
        marks = ", ".join(["%s"] * len(self.columns))
        self._sqlite = f"insert into {self.name} ({self.list}) values ({marks}) {conflict}"
        self._postgres = self.insert("", conflict)

    def insert(self, join: str, conflict: str = "") -> str:
        """Return PostgreSQL's insert of the rows in one JSON parameter. `join` is SQL that joins or orders them."""
        rows = f"jsonb_to_recordset(%s::jsonb) as x({self.record})"
        return f"insert into {self.name} ({self.list}) select {self._prefixed} from {rows} {join} {conflict}"

    @property
    def _prefixed(self) -> str:
        return ", ".join(f"x.{name}" for name in self.columns)

    def values(self, row: Row) -> tuple[Any, ...]:
        """Return the values of a row for SQLite."""
        values = [getattr(row, name) for name in self.fields]
        for place in self._times:
            if values[place] is not None:
                values[place] = sqlite_time(values[place])
        return tuple(values)

    def write(self, cursor: CursorWrapper, rows: Sequence[Row]) -> None:
        """Insert the rows, on either database."""
        if not rows:
            return
        if on_postgres():
            cursor.execute(self._postgres, (as_json(rows),))
        else:
            cursor.executemany(self._sqlite, [self.values(row) for row in rows])

    def write_one(self, cursor: CursorWrapper, row: Row) -> bool:
        """Insert the row on SQLite. Return False if the conflict clause left it out."""
        cursor.execute(self._sqlite, self.values(row))
        return bool(cursor.rowcount)


def _plain(hint: Any) -> type:
    """Return the type of a column without None. A column of literals is text."""
    if get_origin(hint) is Literal:
        return str
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    kind: type = kinds[0] if kinds else hint
    return kind


def as_json(rows: Sequence[Row]) -> str:
    """Return the rows as PostgreSQL's jsonb_to_recordset takes them."""
    return msgspec.json.encode(rows).decode()


KEYS = Table(IdempotencyKey, KeyRow)
NEW_KEYS = Table(IdempotencyKey, KeyRow, "on conflict do nothing")
"""Keys of new messages. An existing key leaves its row out, and does not refuse the whole group."""
TASKS = Table(Task, TaskRow)
EVENTS = Table(Event, EventRow)
FILES = Table(File, FileRow)
DIRECT_REPLIES = Table(DirectReply, DirectReplyRow)
RUNS = Table(Run, RunRow)
POSITIONS = Table(RelayedTask, PositionRow, "on conflict (task_id) do update set position = excluded.position")
RESERVATIONS = Table(Reservation, ReservationRow)
WEBHOOKS = Table(Webhook, WebhookRow)
DELIVERIES = Table(Delivery, DeliveryRow)
# A response may be stored after its request: see the room exchanges.
EXCHANGES = Table(Exchange, ExchangeRow)
BODIES = Table(ExchangeBody, BodyRow)
AUDIT = Table(AuditEntry, AuditRow)
ACTS = Table(Act, ActRow)
USAGE = Table(Usage, UsageRow, "on conflict do nothing")
SECRETS = Table(RunSecret, SecretRow)
# Rows that may exist already.
DOUBTFUL_EXCHANGES = Table(Exchange, ExchangeRow, "on conflict do nothing")
DOUBTFUL_BODIES = Table(ExchangeBody, BodyRow, "on conflict do nothing")
