"""Findings about the memory: the room of an owner that is not that of the owner's entries."""

from collections.abc import Iterator

from django.db.models import Count, Sum

from tasks_app.doctor.finding import Finding
from tasks_app.doctor.snapshot import snapshot
from tasks_app.models import MemoryEntry, MemoryUse

PAGE = 50
"""Owners examined in one snapshot."""


def examine_memory(limit: int | None) -> Iterator[Finding]:
    """Yield findings about the rooms of the newest owners up to the limit; None is all."""
    before: int | None = None
    count = 0
    while limit is None or count < limit:
        size = PAGE if limit is None else min(PAGE, limit - count)
        with snapshot():
            rows = MemoryUse.objects.order_by("-pk")
            page = list(rows[:size] if before is None else rows.filter(pk__lt=before)[:size])
            findings = list(_compare(page))
        yield from findings
        if not page:
            return
        count, before = count + len(page), page[-1].pk


def _compare(uses: list[MemoryUse]) -> Iterator[Finding]:
    """Yield findings about rooms. Call it in a snapshot, so that rooms and entries are of the same moment."""
    entries = MemoryEntry.objects.filter(owner_id__in=[use.pk for use in uses]).values_list("owner_id")
    rooms = {owner: (number, size) for owner, number, size in entries.annotate(number=Count("pk"), bytes=Sum("size"))}
    for use in uses:
        number, size = rooms.get(use.pk, (0, 0))
        if (use.entries, use.size) != (number, size):
            yield Finding(
                kind="memory",
                subject=str(use.pk),
                problem=f"The memory of owner {use.pk} has {number:,} entries with {size:,} bytes, but is counted as "
                f"{use.entries:,} entries with {use.size:,} bytes.",
                remedy="Keep a copy of the database and report it. Limits of the memory are wrong for this owner.",
            )
