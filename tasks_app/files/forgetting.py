"""Deleting bytes: those of tasks that are gone, and those that no transaction ever took."""

import logging
import time
from contextlib import suppress
from datetime import timedelta

from django.core.files.base import ContentFile
from django.db.migrations.recorder import MigrationRecorder

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.files.storage import DoWithFiles, path_of, storage
from tasks_app.models import File

log = logging.getLogger(__name__)
BATCH = 200
"""Files deleted at once."""
OWNER = "database"
"""The file that names the database whose rows know the others."""
BETWEEN = 3600.0
"""Seconds between two looks for orphans."""


def sweep() -> None:
    """Delete a batch of each kind. A storage that fails now may work the next time: other work goes on."""
    try:
        forget_gone()
        orphans.sweep()
    except Exception:
        log.exception("files could not be deleted; trying again")


def forget_gone() -> bool:
    """Deletes files whose task is gone, their bytes first; whether there may be more."""
    gone: list[str] = bridge.do(DoWithFiles(_delete_gone))
    if gone:
        bridge.do(Do(lambda: File.objects.filter(id__in=gone, holder="").delete()))
    return len(gone) == BATCH


def _delete_gone() -> list[str]:
    gone = []
    for file_id in File.objects.filter(holder="").values_list("id", flat=True)[:BATCH]:
        try:
            storage().delete(path_of(file_id))
        except Exception as error:  # noqa: BLE001  # a storage of anybody's may raise anything
            log.warning("file %s cannot be deleted; trying again: %r", file_id, error)
        else:
            gone.append(file_id)
    return gone


class Orphans:
    """Bytes without a row: their transaction was undone, or the process died before it."""

    def __init__(self) -> None:
        self.done: set[str] = set()
        """Days that have been looked at: nothing new comes into their folders."""
        self.due = 0.0
        """When to look for folders again, on the monotonic clock: some storages ask another machine."""

    def sweep(self) -> int:
        """Looks at one folder in which everything is older than a day, if one is left; how many files it deleted."""
        if time.monotonic() < self.due:
            return 0
        self.due = time.monotonic() + BETWEEN
        deleted: int | None = bridge.do(DoWithFiles(self._sweep))
        if deleted is not None:
            self.due = 0.0
            log.info("%d files without a task deleted", deleted)
        return deleted or 0

    def _sweep(self) -> int | None:
        if not _is_ours():
            log.warning(
                "the files belong to another database (see %s in their storage): none of them is deleted", OWNER
            )
            return None
        young = f"{clock.now() - timedelta(days=1):%Y%m%d}"
        day = next((day for day in _days() if day < young and day not in self.done), None)
        if day is None:
            return None
        names = storage().listdir(day)[1]
        lost = [name for start in range(0, len(names), BATCH) for name in _lost(day, names[start : start + BATCH])]
        for name in lost:
            storage().delete(f"{day}/{name}")
        self.done.add(day)
        if len(lost) == len(names):
            with suppress(OSError):  # Some storages have no folders to delete.
                storage().delete(day)
        return len(lost)


orphans = Orphans()
"""The one of this process."""


def _is_ours() -> bool:
    """A database that knows nothing of the files, such as an empty one that was set by mistake, would find no row for
    any. The first that looks puts its name there: the time of its first migration, which backups keep."""
    name = MigrationRecorder.Migration.objects.earliest("id").applied.isoformat()
    if storage().exists(OWNER):
        with storage().open(OWNER) as file:
            owner = file.read().decode().strip()
        if owner:
            return bool(owner == name)
        storage().delete(OWNER)  # Its writer was killed.
    storage().save(OWNER, ContentFile(name.encode()))
    return True


def _days() -> list[str]:
    try:
        return sorted(name for name in storage().listdir("")[0] if name.isdigit() and len(name) == 8)
    except FileNotFoundError:  # Nothing was ever stored.
        return []


def _lost(day: str, names: list[str]) -> list[str]:
    """Return the names that no row refers to."""
    known = set(File.objects.filter(pk__in=[f"{day}-{name}" for name in names]).values_list("id", flat=True))
    return [name for name in names if f"{day}-{name}" not in known]
