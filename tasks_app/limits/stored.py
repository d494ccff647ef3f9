"""The sums of what owners have stored, from the sizes in the rows themselves."""

from collections import Counter
from collections.abc import Collection

import orjson

from tasks_app.database.prepared import prepared
from tasks_app.database.sql import length_function, on_postgres
from tasks_app.models import (
    Batch,
    BatchItem,
    DirectReply,
    Exchange,
    ExchangeBody,
    File,
    MemoryUse,
    PhaseTask,
    SharedStream,
    Task,
    Workflow,
)
from tasks_app.models.exchanges import LARGE_REQUEST

Sums = dict[int, Counter[str]]
"""The bytes of each owner, by kind of row."""

_TASK, _REPLY, _FILE = (model._meta.db_table for model in (Task, DirectReply, File))
_ITEM, _BATCH, _FLOW, _PHASE = (model._meta.db_table for model in (BatchItem, Batch, Workflow, PhaseTask))
_BODY = ExchangeBody._meta.db_table
# The condition is that of an index. Small requests would cost a look at each call.
_LARGE = f"(select id, caller_id from {Exchange._meta.db_table} where request_bytes >= {LARGE_REQUEST})"
_SOURCES = (
    ("tasks", "owner_id", "size", _TASK),
    ("files", "t.owner_id", "f.size", f"{_FILE} f join {_TASK} t on t.id = f.holder"),
    ("files", "r.owner_id", "f.size", f"{_FILE} f join {_REPLY} r on r.id = f.holder"),
    ("replies", "owner_id", "{length}(message) + {length}(reply)", _REPLY),
    ("memory", "owner_id", "size", MemoryUse._meta.db_table),
    ("shared_streams", "owner_id", "size + coalesce({length}(metadata), 0)", SharedStream._meta.db_table),
    ("batches", "b.owner_id", "{length}(i.message)", f"{_ITEM} i join {_BATCH} b on b.id = i.batch_id"),
    ("workflows", "owner_id", "{length}(message) + {length}(configuration) + {length}(agent_types)", _FLOW),
    ("workflows", "w.owner_id", "{length}(p.artifacts)", f"{_PHASE} p join {_FLOW} w on w.id = p.workflow_id"),
    (
        "calls",
        "e.caller_id",
        "{length}(b.request) + {length}(b.response)",
        f"{_LARGE} e join {_BODY} b on b.exchange_id = e.id",
    ),
)
"""The kinds of rows that count: their names, owners, sizes and tables. No part reads a long text on PostgreSQL."""
KINDS = tuple(dict.fromkeys(kind for kind, *_ in _SOURCES))


def sum_stored(owners: Collection[int] | None = None) -> Sums:
    """Return what these owners have stored; without owners, what all have. It is one statement.

    For some owners it reads the indexes by owner, and for all each table once.
    """
    condition, one = "{owner} is not null", []
    if owners is not None:
        among = "= any(%s)" if on_postgres() else "in (select value from json_each(%s))"
        condition, one = f"{{owner}} {among}", [list(owners) if on_postgres() else orjson.dumps(list(owners)).decode()]
    length = length_function()
    parts = [
        f"select '{kind}', {owner}, cast(coalesce(sum({size.format(length=length)}), 0) as bigint) from {tables} "
        f"where {condition.format(owner=owner)} group by {owner}"
        for kind, owner, size, tables in _SOURCES
    ]
    sums: Sums = {}
    with prepared() as cursor:
        cursor.execute(" union all ".join(parts), one * len(parts))
        for kind, owner_id, size in cursor.fetchall():
            sums.setdefault(owner_id, Counter())[kind] += size
    return sums
