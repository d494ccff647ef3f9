"""Deletion of bytes: those of deleted tasks, and orphans, whose transaction was never committed."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial

from django.core.files.base import ContentFile
from django.db.migrations.recorder import MigrationRecorder

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.files.storage import DoWithFiles, path_of, storage
from tasks_app.models import File

log = logging.getLogger(__name__)
BATCH = 200
"""Files deleted together."""
OWNER = "database"
"""The file in the storage that names the database with the rows of all others."""
BETWEEN = 3600.0
"""Seconds between two searches for orphans."""


def sweep(is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Delete unused files, until the process stops, and a folder of orphans. Never raises: a storage that fails may
    work next time."""
    try:
        unused.sweep(is_stopping)
        if not is_stopping():
            orphans.sweep()
    except Exception:
        log.exception("files could not be deleted; trying again")


class Unused:
    """The files of deleted tasks."""

    def __init__(self) -> None:
        self.place = ""
        """The last id of the batch before. Each batch begins behind it, so that files that cannot be deleted hold up no
        others, and the first batch begins anew after the last one."""

    def sweep(self, is_stopping: Callable[[], bool]) -> None:
        """Delete the files batch by batch, until the process stops or none of a batch could be deleted: a storage that
        is away would otherwise be asked, and the log told, for every file.

        The bytes go before the row: after a crash between the two, the row is still there to try again.
        """
        while not is_stopping():
            batch = bridge.do(DoWithFiles(partial(_delete_unused_bytes, self.place)))
            self.place = max(batch, default="")
            deleted = [file_id for file_id, is_deleted in batch.items() if is_deleted]
            if not deleted:
                return
            orphans.examined -= bridge.do(Do(partial(_delete_rows, deleted)))


unused = Unused()
"""The deletion of unused files by this process."""


def _delete_rows(ids: list[str]) -> set[str]:
    """Delete the rows of files; return the days that have no more, whose folders may go."""
    File.objects.filter(id__in=ids, holder="").delete()
    days = {file_id.partition("-")[0] for file_id in ids}
    # No search for a prefix: PostgreSQL has no index for one.
    return {day for day in days if not File.objects.filter(id__gte=day, id__lt=str(int(day) + 1)).exists()}


def _delete_unused_bytes(place: str) -> dict[str, bool]:
    """Delete the bytes of the next unused files behind an id; return for each id whether they could be deleted."""
    ids = File.objects.filter(holder="", id__gt=place).order_by("id").values_list("id", flat=True)
    return {file_id: _delete_bytes(file_id) for file_id in ids[:BATCH]}


def _delete_bytes(file_id: str) -> bool:
    try:
        storage().delete(path_of(file_id))
    except Exception as error:  # noqa: BLE001  # a storage that an operator chose may raise anything
        log.warning("file %s cannot be deleted; trying again: %r", file_id, error)
        return False
    return True


class Orphans:
    """Bytes without a row: their transaction was rolled back, or the process died before it."""

    def __init__(self) -> None:
        self.examined: set[str] = set()
        """Days whose folder has been examined. No file is added to a folder after its day. A day is dropped when its
        last file has gone, so that its folder goes with the next search."""
        self.due = 0.0
        """When to list the folders again, on the monotonic clock. It is rare, since some storages are remote."""

    def sweep(self) -> int:
        """Delete the orphans of one folder that is more than a day old; return their number."""
        if time.monotonic() < self.due:
            return 0
        self.due = time.monotonic() + BETWEEN
        deleted = bridge.do(DoWithFiles(self._sweep))
        if deleted is not None:
            self.due = 0.0
            log.info("%d files without a task deleted", deleted)
        return deleted or 0

    def _sweep(self) -> int | None:
        """Delete the orphans of one folder; return their number, or None if no folder is left to examine."""
        if not _is_ours():
            log.warning(
                "the files belong to another database (see %s in their storage): none of them is deleted", OWNER
            )
            return None
        young = f"{clock.now() - timedelta(days=1):%Y%m%d}"
        day = next((day for day in _list_days() if day < young and day not in self.examined), None)
        if day is None:
            return None
        names = storage().listdir(day)[1]
        batches = (names[start : start + BATCH] for start in range(0, len(names), BATCH))
        orphans = [name for batch in batches for name in _find_orphans(day, batch)]
        for name in orphans:
            storage().delete(f"{day}/{name}")
        self.examined.add(day)
        if len(orphans) == len(names):
            with suppress(OSError):  # Some storages have no folders to delete.
                storage().delete(day)
        return len(orphans)


orphans = Orphans()
"""The search for orphans of this process."""


def _is_ours() -> bool:
    """Return whether the files belong to this database.

    To another database, such as an empty one that was set by mistake, every file would be an orphan. So the first
    search writes the name of its database into the storage: the time of its first migration, which a backup restores.
    """
    name = MigrationRecorder.Migration.objects.earliest("id").applied.isoformat()
    if storage().exists(OWNER):
        with storage().open(OWNER) as file:
            owner = file.read().decode().strip()
        if owner:
            return bool(owner == name)
        storage().delete(OWNER)  # An empty file: its writer was killed.
    storage().save(OWNER, ContentFile(name.encode()))
    return True


def _list_days() -> list[str]:
    try:
        return sorted(name for name in storage().listdir("")[0] if name.isdigit() and len(name) == 8)
    except FileNotFoundError:  # No file was ever stored.
        return []


def _find_orphans(day: str, names: list[str]) -> list[str]:
    """Return the names without a row."""
    ids = set(File.objects.filter(pk__in=[f"{day}-{name}" for name in names]).values_list("id", flat=True))
    return [name for name in names if f"{day}-{name}" not in ids]
