"""Findings about files: rows whose bytes are not in the storage."""

from collections.abc import Iterator

from tasks_app.database.keyset import older_than
from tasks_app.doctor.finding import Finding
from tasks_app.doctor.guard import describe
from tasks_app.doctor.work import MOST
from tasks_app.files.storage import path_of, storage
from tasks_app.models import File

PAGE = 200
"""Rows that are read together."""


def examine_files(limit: int | None) -> Iterator[Finding]:
    """Yield findings about the newest files up to the limit, for so many at most; None is all.

    No snapshot is open meanwhile, because the storage may be slow.
    """
    before, count, missing = "", 0, 0
    while limit is None or count < limit:
        size = PAGE if limit is None else min(PAGE, limit - count)
        page = list(older_than(File.objects.exclude(holder="").order_by("-id"), before)[:size])
        for row in page:
            try:
                is_missing = _is_missing(row)
            except Exception as error:  # noqa: BLE001  # a storage that an operator chose may raise anything
                yield _silent_storage(error)
                return
            if is_missing:
                yield _missing_file(row)
                missing += 1
            if missing == MOST:
                return
        if not page:
            return
        count, before = count + len(page), page[-1].id


def _is_missing(row: File) -> bool:
    """Return whether the bytes of a file are not in the storage, though its task has not been deleted meanwhile."""
    return not storage().exists(path_of(row.id)) and File.objects.filter(id=row.id).exclude(holder="").exists()


def _missing_file(row: File) -> Finding:
    return Finding(
        kind="file",
        subject=row.id,
        problem=f"File {row.id} of task {row.holder} has a row, but is not in the storage.",
        remedy=f"Restore {path_of(row.id)} from the copy of the files. If many are missing, see whether "
        f"A2A_FILE_STORAGE names the storage of the servers.",
    )


def _silent_storage(error: Exception) -> Finding:
    return Finding(
        kind="file",
        subject="files",
        problem=f"The storage of files does not answer: {describe(error)}.",
        remedy="See A2A_FILE_STORAGE. Files are neither stored nor sent until it answers.",
    )
