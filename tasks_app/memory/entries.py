"""The writes to the memory: the only writer of its tables.

Each write is one transaction. It locks the row with the room of the owner, so the writes of an owner come one after the
other. So versions have no gaps and no limit is passed, even if several processes write at the same time.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, F, QuerySet, Sum
from msgspec import Struct

from a2a.errors import InvalidParams, MemoryNotFound, UnsupportedOperation
from a2a.memory import AttemptOver, DeleteMemory, MemoryDeletion, MemoryDocument, StoreMemory
from a2a.states import TaskState
from tasks_app import clock
from tasks_app.callers.access import Caller
from tasks_app.database.rows import AuditRow
from tasks_app.database.tables import AUDIT
from tasks_app.limits.quotas import quota
from tasks_app.memory.words import encode, words_of
from tasks_app.models import MemoryEntry, MemoryUse, Task

CLEARED = 1_000
"""Expired entries that a write of their owner removes, at most, where the owner has reached a limit."""


class Holder(Struct, frozen=True, kw_only=True):
    """The owner of entries, and the author of a write in the owner's name."""

    tenant_id: int
    owner_id: int
    author: str
    task_id: str | None = None
    """The task whose agent writes."""
    fence: int | None = None
    """The fence of the run, without which its task refuses the write; None for a caller, and before there is a task."""


def holder_for(caller: Caller, author: str = "") -> Holder:
    """Return the holder for a call: the caller, or an agent that answers within the call."""
    return Holder(tenant_id=caller.tenant_id, owner_id=caller.owner_id, author=author or caller.name)


def store(holder: Holder, request: StoreMemory, entry: AuditRow | None = None) -> MemoryDocument:
    """Store a value. Raises InvalidParams, UnsupportedOperation at a limit, and AttemptOver."""
    data, now = encode(request.data), clock.now()
    size, words = len(data.encode()), words_of(request.key, request.data)
    if size > settings.A2A_MEMORY_ENTRY_BYTES:
        raise InvalidParams(("data", f"must have {settings.A2A_MEMORY_ENTRY_BYTES:,} bytes at most, not {size:,}"))
    with transaction.atomic():
        use = _lock(holder)
        row = find(holder.owner_id, request.namespace, request.key).first()
        if row is not None and _is_repeat(row, holder, request, data, now):
            return document_of(row)
        _check_version(request.if_version, row, now)
        _make_room(use, size - (row.size if row else 0), 0 if row else 1, now)
        if row is None:
            row = MemoryEntry(
                tenant_id=holder.tenant_id, owner_id=holder.owner_id, namespace=request.namespace, key=request.key
            )
            row.version = 0
        if row.version == 0 or _is_gone(row, now):
            row.created_at = now
        row.data, row.words, row.size, row.version = data, words, size, row.version + 1
        row.author, row.task_id, row.updated_at = holder.author[:64], holder.task_id, now
        row.expires_at = _expiry(request.ttl, now)
        row.save()
        _write_audit(entry)
    quota.add(holder.owner_id, size)
    return document_of(row)


def delete(holder: Holder, request: DeleteMemory, entry: AuditRow | None = None) -> MemoryDeletion:
    """Delete an entry. Raises MemoryNotFound, InvalidParams for another version, and AttemptOver."""
    now = clock.now()
    with transaction.atomic():
        _lock(holder)
        row = find(holder.owner_id, request.namespace, request.key).first()
        if row is None or _is_gone(row, now):
            raise MemoryNotFound(namespace=request.namespace, key=request.key)
        _check_version(request.if_version, row, now)
        remove([row.pk])
        _write_audit(entry)
    return MemoryDeletion(namespace=request.namespace, key=request.key)


def find(owner_id: int, namespace: str, key: str) -> QuerySet[MemoryEntry]:
    """Return the row of an entry, which may have expired."""
    return MemoryEntry.objects.filter(owner_id=owner_id, namespace=namespace, key=key)


def document_of(row: MemoryEntry) -> MemoryDocument:
    """Return the document of a row without its data."""
    return MemoryDocument(
        namespace=row.namespace,
        key=row.key,
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        size=row.size,
    )


def remove(ids: Iterable[int], expired_before: datetime | None = None) -> int:
    """Delete rows, and take them off the room of their owners; return their number.

    Call it in a transaction. The rooms are locked first, in the order of the owners, as each write locks its own. With
    `expired_before`, a row stays that was written again in between.
    """
    rows = MemoryEntry.objects.filter(pk__in=list(ids))
    if expired_before is not None:
        rows = rows.filter(expires_at__lt=expired_before)
    lock_rooms(rows.values_list("owner_id", flat=True))
    sums = list(rows.values_list("owner_id").annotate(entries=Count("pk"), bytes=Sum("size")).order_by("owner_id"))
    rows._raw_delete(using=connection.alias)
    for owner_id, entries, size in sums:
        MemoryUse.objects.filter(pk=owner_id).update(entries=F("entries") - entries, size=F("size") - size)
    return sum(entries for _, entries, _ in sums)


def lock_rooms(owners: Iterable[int]) -> None:
    """Lock the rooms of owners, in the order of the owners. Raises an error of the database if one is locked."""
    rows = MemoryUse.objects.select_for_update(no_key=True, nowait=True).filter(pk__in=sorted(set(owners)))
    list(rows.order_by("pk"))


def _lock(holder: Holder) -> MemoryUse:
    """Return the room of an owner under a lock. Raises AttemptOver for a run that another one has followed.

    Raises an error of the database if another transaction has locked either row: then the work item is done again.
    """
    if holder.fence is not None:
        tasks = Task.objects.select_for_update(no_key=True, nowait=True, of=("self",))
        if not tasks.filter(pk=holder.task_id, fence=holder.fence, state=TaskState.WORKING.value).exists():
            raise AttemptOver(f"the attempt {holder.fence} at task {holder.task_id} is over")
    MemoryUse.objects.get_or_create(pk=holder.owner_id)
    return MemoryUse.objects.select_for_update(no_key=True, nowait=True).get(pk=holder.owner_id)


def _is_gone(row: MemoryEntry, now: datetime) -> bool:
    return row.expires_at is not None and row.expires_at <= now


def _is_repeat(row: MemoryEntry, holder: Holder, request: StoreMemory, data: str, now: datetime) -> bool:
    """Return whether an earlier attempt of the task has done a write.

    A write that names a version is never a repetition: two callers may write the same value over the same version, as
    two that count do, and only one of them may succeed.
    """
    if holder.task_id is None or request.ttl is not None or request.if_version is not None:
        return False
    return row.task_id == holder.task_id and row.data == data and not _is_gone(row, now)


def _check_version(version: int | None, row: MemoryEntry | None, now: datetime) -> None:
    """Check that an entry has the version that a write names. Raises InvalidParams."""
    current = 0 if row is None or _is_gone(row, now) else row.version
    if version is not None and version != current:
        there = f"the entry has version {current}" if current else "there is no such entry"
        raise InvalidParams(("ifVersion", f"is {version}, but {there}"), version=str(current))


def _expiry(ttl: float | None, now: datetime) -> datetime | None:
    """Return when an entry expires that is written now."""
    longest = timedelta(days=settings.A2A_MEMORY_DAYS) if settings.A2A_MEMORY_DAYS else None
    own = timedelta(seconds=ttl) if ttl is not None else None
    ends = [one for one in (own, longest) if one is not None]
    return now + min(ends) if ends else None


def _make_room(use: MemoryUse, size: int, entries: int, now: datetime) -> None:
    """Count a write, and remove expired entries of its owner if it would pass a limit. Raises UnsupportedOperation."""
    if _problem(use, size, entries):
        rest = MemoryEntry.objects.filter(owner_id=use.pk, expires_at__lte=now).order_by("expires_at")
        if remove(rest.values_list("pk", flat=True)[:CLEARED]):
            use.refresh_from_db()
        if problem := _problem(use, size, entries):
            raise UnsupportedOperation(detail=problem)
    MemoryUse.objects.filter(pk=use.pk).update(entries=F("entries") + entries, size=F("size") + size)


def _problem(use: MemoryUse, size: int, entries: int) -> str:
    """Return the limit that a write would pass, as a sentence; empty if there is none."""
    for noun, more, present, most in (
        ("entries", entries, use.entries, settings.A2A_OWNER_MEMORY_ENTRIES),
        ("bytes", size, use.size, settings.A2A_OWNER_MEMORY_BYTES),
    ):
        if most and more > 0 and present + more > most:
            return f"the memory of one owner has {most:,} {noun} at most: delete entries, or store them with a ttl"
    return ""


def _write_audit(entry: AuditRow | None) -> None:
    with connection.cursor() as cursor:
        AUDIT.write(cursor, [entry] if entry else [])
