"""Taking large parts out of messages and actions, within the limits."""

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import suppress

from django.conf import settings
from django.core.files.base import ContentFile
from django.db.models import Sum
from msgspec import Struct
from msgspec.structs import replace

from a2a.files import id_of, reference, safe_name, safe_type
from a2a.media import media_type_of
from a2a.run import Action
from a2a.types import Part
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.rows import FileRow
from tasks_app.files.storage import DoWithFiles, path_of, storage
from tasks_app.models import File


class TooLarge(ValueError):
    """More than may be kept; the place is that of the part."""

    def __init__(self, place: int, sentence: str) -> None:
        super().__init__(sentence)
        self.place = place
        self.sentence = sentence


class Kept(Struct, frozen=True):
    """Parts as they are stored, and the rows of the files that some of them refer to."""

    parts: tuple[Part, ...]
    rows: list[FileRow]


def any_large(parts: Sequence[Part]) -> bool:
    """Whether there are bytes that do not stay in the rows."""
    return any(part.raw is not None and len(part.raw) > settings.A2A_INLINE_BYTES for part in parts)


def keeping(parts: tuple[Part, ...], task_id: str = "", besides: int = 0) -> DoWithFiles[Kept]:
    """An item that stores what is large. Its result is Kept; the bytes besides are of files without a row yet."""
    return DoWithFiles(lambda: keep(parts, task_id, besides))


async def kept(action: Action, task_id: str, waiting: Sequence[FileRow]) -> tuple[Action, list[FileRow]]:
    """An agent's action with its large parts stored. Raises TooLarge."""
    done = await bridge.ask(keeping(action.parts, task_id, sum(row.size for row in waiting)))
    return replace(action, parts=done.parts), done.rows


def keep(parts: tuple[Part, ...], task_id: str = "", besides: int = 0) -> Kept:
    """Stores what is large. Raises TooLarge, before anything is stored."""
    limit = settings.A2A_INLINE_BYTES
    sizes = {place: len(part.raw) for place, part in enumerate(parts) if part.raw and len(part.raw) > limit}
    _check_sizes(sizes, task_id, besides)
    rows: list[FileRow] = []
    out = list(parts)
    try:
        for place in sizes:
            out[place], row = _stored(parts[place], task_id)
            rows.append(row)
    except BaseException:
        _delete(rows)
        raise
    return Kept(tuple(out), rows)


def _check_sizes(sizes: dict[int, int], task_id: str, besides: int) -> None:
    most = settings.A2A_FILE_BYTES
    for place, size in sizes.items():
        if size > most:
            raise TooLarge(place, f"a file may have {most} bytes at most; this one has {size}")
    total = besides + sum(sizes.values())
    if task_id:
        total += File.objects.filter(holder=task_id).aggregate(total=Sum("size"))["total"] or 0
    if total > settings.A2A_TASK_FILE_BYTES:
        sentence = f"the files of a task may have {settings.A2A_TASK_FILE_BYTES} bytes in all"
        raise TooLarge(next(iter(sizes)), sentence)


def _stored(part: Part, task_id: str) -> tuple[Part, FileRow]:
    now, raw = clock.now(), part.raw or b""
    name, kind = safe_name(part.filename), safe_type(media_type_of(part))
    url = reference(f"{now:%Y%m%d}", secrets.token_hex(16), name)
    path = path_of(id_of(url))
    saved = storage().save(path, ContentFile(raw))
    if saved != path:
        storage().delete(saved)
        raise OSError("the storage of files gives names of its own: it cannot be used")
    row = FileRow(
        id=id_of(url), holder=task_id, name=name, media_type=kind, size=len(raw),
        digest=hashlib.sha256(raw).hexdigest(), created_at=now,
    )  # fmt: skip
    return replace(part, raw=None, url=url), row


def dropping(rows: Sequence[FileRow]) -> DoWithFiles[None]:
    """An item that deletes files whose rows were not written."""
    return DoWithFiles(lambda: _delete(rows))


def _delete(rows: Sequence[FileRow]) -> None:
    for row in rows:
        with suppress(Exception):  # The sweep of orphans finds it.
            storage().delete(path_of(row.id))
