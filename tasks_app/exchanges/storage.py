"""The statements that write exchanges."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from django.db import transaction

from tasks_app.database.prepared import prepared
from tasks_app.database.rows import BODIES, DOUBTFUL_BODIES, DOUBTFUL_EXCHANGES, EXCHANGES, ExchangeRow, as_json
from tasks_app.database.sql import on_postgres
from tasks_app.exchanges.backlog import Pair

_ENDINGS = (
    *("outcome", "code", "http_status", "duration_us", "response_bytes", "frames"),
    *("first_seq", "last_seq", "task_id", "context_id"),
)
"""The columns of the answer half."""


def write(new: Sequence[Pair], endings: Sequence[Pair], doubtful: Sequence[Pair]) -> None:
    """Insert new exchanges, insert doubtful ones unless they are there, and write the answer halves of the others."""
    endings = [*endings, *doubtful]
    answers = [(body.response, body.exchange_id) for _, body in endings if body.response]
    # Most groups have endings only. On PostgreSQL these are one statement, which needs no transaction around it.
    alone = on_postgres() and not new and not doubtful and not answers
    with nullcontext() if alone else transaction.atomic(), prepared() as cursor:
        EXCHANGES.write(cursor, [row for row, _ in new])
        BODIES.write(cursor, [body for _, body in new])
        DOUBTFUL_EXCHANGES.write(cursor, [row for row, _ in doubtful])
        DOUBTFUL_BODIES.write(cursor, [body for _, body in doubtful])
        if endings and on_postgres():
            rows = [row for row, _ in endings]
            cursor.execute(_END_POSTGRES, (as_json(rows), [row.id for row in rows]))
        elif endings:
            cursor.executemany(_END_SQLITE, [_ending(row) for row, _ in endings])
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
