"""The tables whose rows are written in groups, and the statements by which each database writes them.

PostgreSQL takes a whole table's rows as one JSON parameter, so that several tables fit into one statement; SQLite,
which is in the process, takes them one by one.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from django.db import models
from django.db.backends.utils import CursorWrapper

from tasks_app.database.rows import (
    ActRow,
    AuditRow,
    BodyRow,
    DeliveryRow,
    DirectReplyRow,
    EventRow,
    ExchangeRow,
    FileRow,
    KeyRow,
    PositionRow,
    ReservationRow,
    Row,
    RunRow,
    SecretRow,
    TaskRow,
    UsageRow,
    WebhookRow,
)
from tasks_app.database.sql import on_postgres, sqlite_time
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
