"""The storage of files, and reading from it."""

import time
from collections.abc import Sequence
from typing import Generic, Self

from django.core.files.storage import Storage, storages
from msgspec import Struct

from a2a.files import id_of
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do, R, Work
from tasks_app.models import File

MEMORY_SECONDS = 600.0
"""Seconds for which a file that was not stored is reported. No other one may come."""


class DoWithFiles(Do[R], Generic[R], frozen=True):
    """A function that reads or writes stored bytes, in a lane of its own, so that a slow disk delays no other work."""

    lane = "files"
    patient = True
    """A large file may take long."""

    def unique(self) -> None:
        """Make all items equal, so that each is a group of its own.

        In a larger group an item would wait for the files of others, and all of them would be in memory together.
        """


def storage() -> Storage:
    return storages["files"]


class Outage:
    """An outage of the storage, as far as this process knows."""

    def __init__(self) -> None:
        self.failed_at: float | None = None
        """The time of the last failure on the monotonic clock; None if a file was stored since."""

    def troubles(self) -> list[str]:
        """Return a sentence while the last file could not be stored, until it is long ago."""
        if self.failed_at is None or (age := time.monotonic() - self.failed_at) > MEMORY_SECONDS:
            return []
        return [f"files: the storage did not take the last file, {age:.0f} s ago; see the log"]


outage = Outage()
"""The outage of the storage for this process."""


def path_of(file_id: str) -> str:
    """Return the path of a file in the storage. Each day has a folder, so that only old folders are searched."""
    return file_id.replace("-", "/", 1)


def load(url: str) -> bytes:
    """Return the bytes of the file that a reference names."""
    with storage().open(path_of(id_of(url))) as file:
        return bytes(file.read())


class RunFiles:
    """The reader of files that agents get with their run."""

    async def read(self, url: str) -> bytes:
        return await bridge.ask(DoWithFiles(lambda: load(url)))

    def read_now(self, url: str) -> bytes:
        return bridge.do(DoWithFiles(lambda: load(url)))


run_files = RunFiles()
"""The reader for all runs."""


class FindFile(Work[File | None], Struct, frozen=True):
    """Finds the row of a file, unless its task has been deleted."""

    lane = "read"
    repeatable = True

    id: str

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[File | None]:
        return find_many(items)


def find_many(items: Sequence[FindFile]) -> list[File | None]:
    rows = {row.id: row for row in File.objects.filter(pk__in={item.id for item in items}).exclude(holder="")}
    return [rows.get(item.id) for item in items]
