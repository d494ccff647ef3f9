"""Storing the large parts of messages and actions as files, within the limits."""

import hashlib
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress

from django.conf import settings
from django.core.files.base import ContentFile
from django.db.models import Sum
from msgspec import Struct
from msgspec.structs import replace

from a2a.actions import Action
from a2a.files import id_of, reference, safe_name, safe_type
from a2a.media import media_type_of
from a2a.mistakes import WrongValue
from a2a.types import Part
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.rows import FileRow
from tasks_app.files.storage import DoWithFiles, outage, path_of, storage
from tasks_app.models import File


class TooLarge(ValueError):
    """Raised for a part beyond the limits; `place` is its index, and `setting` the name of the limit."""

    def __init__(self, place: int, sentence: str, setting: str) -> None:
        super().__init__(sentence)
        self.place = place
        self.sentence = sentence
        self.setting = setting


class StoredParts(Struct, frozen=True):
    """Parts as a task stores them, and the rows of the files that some of them refer to."""

    parts: tuple[Part, ...]
    rows: list[FileRow]


def has_large(parts: Sequence[Part]) -> bool:
    """Return whether a part is too large to be stored inline."""
    return any(part.raw is not None and len(part.raw) > settings.A2A_INLINE_BYTES for part in parts)


def storing_of(
    parts: tuple[Part, ...], task_id: str = "", waiting: tuple[FileRow, ...] = ()
) -> DoWithFiles[StoredParts]:
    """Return the work item that runs `store_large_parts`."""
    return DoWithFiles(lambda: store_large_parts(parts, task_id, waiting))


async def store_action(action: Action, task_id: str, waiting: Sequence[FileRow]) -> tuple[Action, list[FileRow]]:
    """Store the large parts of an agent's action; return the action that refers to them, and their rows.

    `waiting` are rows of the same task that are not written yet. Raises WrongValue for a file beyond the limits, which
    is a mistake of the author, as a value of a wrong type is.
    """
    try:
        stored = await bridge.ask(storing_of(action.parts, task_id, tuple(waiting)))
    except TooLarge as error:
        raise WrongValue(f"gives too large a file: {error.sentence}; {error.setting} sets the limit") from None
    return replace(action, parts=stored.parts), stored.rows


def store_large_parts(parts: tuple[Part, ...], task_id: str = "", waiting: tuple[FileRow, ...] = ()) -> StoredParts:
    """Store the large parts as files. Raises TooLarge before anything is stored.

    `waiting` are rows of files that count towards the task's limit, and that may be written meanwhile.
    """
    limit = settings.A2A_INLINE_BYTES
    sizes = {place: len(part.raw) for place, part in enumerate(parts) if part.raw and len(part.raw) > limit}
    _check_sizes(sizes, task_id, waiting)
    rows: list[FileRow] = []
    out = list(parts)
    try:
        for place in sizes:
            out[place], row = _store(parts[place], task_id)
            rows.append(row)
    except BaseException:
        outage.failed_at = time.monotonic()
        _delete(rows)
        raise
    if rows:
        outage.failed_at = None
    return StoredParts(tuple(out), rows)


def _check_sizes(sizes: dict[int, int], task_id: str, waiting: tuple[FileRow, ...]) -> None:
    most = settings.A2A_FILE_BYTES
    for place, size in sizes.items():
        if size > most:
            raise TooLarge(place, f"a file may have at most {most} bytes; this one has {size}", "A2A_FILE_BYTES")
    total = sum(row.size for row in waiting) + sum(sizes.values())
    if task_id:
        # The writer may have written rows that waited a moment ago. None counts twice.
        others = File.objects.filter(holder=task_id).exclude(pk__in=[row.id for row in waiting])
        total += others.aggregate(total=Sum("size"))["total"] or 0
    if total > settings.A2A_TASK_FILE_BYTES:
        sentence = f"all files of a task together may have at most {settings.A2A_TASK_FILE_BYTES} bytes, not {total}"
        raise TooLarge(next(iter(sizes)), sentence, "A2A_TASK_FILE_BYTES")


def _store(part: Part, task_id: str) -> tuple[Part, FileRow]:
    now, raw = clock.now(), part.raw or b""
    name, kind = safe_name(part.filename), safe_type(media_type_of(part))
    url = reference(f"{now:%Y%m%d}", secrets.token_hex(16), name)
    path = path_of(id_of(url))
    saved = storage().save(path, ContentFile(raw))
    if saved != path:
        storage().delete(saved)
        raise OSError("the storage of files changes names: Taskdesk cannot use it; see A2A_FILE_STORAGE")
    row = FileRow(
        id=id_of(url),
        holder=task_id,
        name=name,
        media_type=kind,
        size=len(raw),
        digest=hashlib.sha256(raw).hexdigest(),
        created_at=now,
    )
    return replace(part, raw=None, url=url), row


def deletion_of(rows: Sequence[FileRow]) -> DoWithFiles[None]:
    """Return the work item that deletes files whose rows were not written."""
    return DoWithFiles(lambda: _delete(rows))


def _delete(rows: Sequence[FileRow]) -> None:
    for row in rows:
        with suppress(Exception):  # The search for orphans deletes it later.
            storage().delete(path_of(row.id))
