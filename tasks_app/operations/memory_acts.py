"""Entries of the memory as operators see them, and the act of operators on them: to remove one."""

from functools import partial
from typing import Any

import orjson
from django.db import transaction

from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.exchanges.redaction import redact
from tasks_app.memory import entries
from tasks_app.models import MemoryEntry, MemoryUse
from tasks_app.operators.audit import Change, Operator, record_acts


def details_of(row: MemoryEntry) -> dict[str, Any]:
    """Return the value of an entry, and the room that its owner takes."""
    text, use = shown_value(row), room_of(row)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = text
    return {"data": value, "owner_entries": use.entries, "owner_bytes": use.size}


def shown_value(row: MemoryEntry) -> str:
    """Return the value of an entry as JSON, with its secrets masked as in a recorded call."""
    return redact(row.data.encode())


def room_of(row: MemoryEntry) -> MemoryUse:
    """Return the room that the owner of an entry takes."""
    return MemoryUse.objects.filter(pk=row.owner_id).first() or MemoryUse(pk=row.owner_id)


def remove(row: MemoryEntry, by: Operator) -> bool:
    """Remove an entry and record the act; return False if it is gone already."""
    return bridge.do(Do(partial(_remove, row.pk, row.owner_id, by)))


def _remove(pk: int, owner_id: int, by: Operator) -> bool:
    with transaction.atomic():
        entries.lock_rooms([owner_id])
        row = MemoryEntry.objects.filter(pk=pk).first()
        if row is None:
            return False
        record_acts(by, "remove", Change(row, {"version": row.version, "size": row.size}, {}))
        return bool(entries.remove([row.pk]))
