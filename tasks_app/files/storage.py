"""Where the bytes are, and reading them."""

from collections.abc import Sequence
from typing import Generic, Self

from django.core.files.storage import Storage, storages
from msgspec import Struct

from a2a.files import id_of
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do, R, Work
from tasks_app.models import File


class DoWithFiles(Do[R], Generic[R], frozen=True):
    """Any function that reads or writes stored bytes, in a lane of its own: a slow disk holds up nothing else."""

    lane = "files"
    patient = True
    """A large file takes its time."""

    def unique(self) -> None:
        """Make all items equal, for groups of one: no call waits for the files of others, nor are all in memory."""


def storage() -> Storage:
    return storages["files"]


def path_of(file_id: str) -> str:
    """Where its bytes are: a folder a day, so that what is too old to be on its way can be told by the folder."""
    return file_id.replace("-", "/", 1)


def load(url: str) -> bytes:
    """All bytes behind a reference."""
    with storage().open(path_of(id_of(url))) as file:
        return bytes(file.read())


class RunFiles:
    """The reader of files that runs are given."""

    async def read(self, url: str) -> bytes:
        return await bridge.ask(DoWithFiles(lambda: load(url)))

    def read_now(self, url: str) -> bytes:
        return bridge.do(DoWithFiles(lambda: load(url)))


run_files = RunFiles()
"""One reader for all runs."""


class FindFile(Work[File | None], Struct, frozen=True):
    """The row of a file that has not been forgotten."""

    lane = "read"
    repeatable = True

    id: str

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[File | None]:
        return find_many(items)


def find_many(items: Sequence[FindFile]) -> list[File | None]:
    found = {row.id: row for row in File.objects.filter(pk__in={item.id for item in items}).exclude(holder="")}
    return [found.get(item.id) for item in items]
