"""The statements that write exchanges."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from django.db import transaction

from tasks_app.database.prepared import prepared
from tasks_app.database.rows import ExchangeRow
from tasks_app.database.sql import on_postgres
from tasks_app.database.tables import AUDIT, BODIES, DOUBTFUL_BODIES, DOUBTFUL_EXCHANGES, EXCHANGES, as_json
from tasks_app.exchanges.backlog import Halves

_ENDINGS = (
    *("outcome", "code", "http_status", "duration_us", "response_bytes", "frames"),
    *("first_seq", "last_seq", "task_id", "context_id"),
)
"""The columns of the answer half."""


def write(new: Sequence[Halves], endings: Sequence[Halves], doubtful: Sequence[Halves]) -> None:
    """Insert new exchanges, insert doubtful ones unless they are there, and write the answer halves of the others."""
    endings = [*endings, *doubtful]
    answers = [(halves.body.response, halves.row.id) for halves in endings if halves.body.response]
    # Most groups have endings only. On PostgreSQL these are one statement, which needs no transaction around it.
    entries = [halves.entry for halves in (*new, *endings) if halves.entry]
    alone = on_postgres() and not new and not doubtful and not answers and not entries
    with nullcontext() if alone else transaction.atomic(), prepared() as cursor:
        EXCHANGES.write(cursor, [halves.row for halves in new])
        BODIES.write(cursor, [halves.body for halves in new])
        DOUBTFUL_EXCHANGES.write(cursor, [halves.row for halves in doubtful])
        DOUBTFUL_BODIES.write(cursor, [halves.body for halves in doubtful])
        AUDIT.write(cursor, entries)
        if endings and on_postgres():
            rows = [halves.row for halves in endings]
            cursor.execute(_END_POSTGRES, (as_json(rows), [row.id for row in rows]))
        elif endings:
            cursor.executemany(_END_SQLITE, [_ending(halves.row) for halves in endings])
        if answers:
            cursor.executemany(f"update {BODIES.name} set response = %s where exchange_id = %s", answers)


# The ids are passed a second time, as an array. PostgreSQL expects a hundred rows of a recordset, and would read the
# whole table to join them.
_END_POSTGRES = (
    f"update {EXCHANGES.name} e set {', '.join(f'{name} = x.{name}' for name in _ENDINGS)} "
    f"from jsonb_to_recordset(%s::jsonb) as x({EXCHANGES.record}) where e.id = x.id and e.id = any(%s)"
)
_END_SQLITE = f"update {EXCHANGES.name} set {', '.join(f'{name} = %s' for name in _ENDINGS)} where id = %s"


def _ending(row: ExchangeRow) -> tuple[Any, ...]:
    return (*(getattr(row, name) for name in _ENDINGS), row.id)
