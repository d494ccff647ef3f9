"""Where the bytes are, and reading them."""

from collections.abc import Sequence

from django.core.files.storage import Storage, storages
from msgspec import Struct

from a2a.files import id_of
from tasks_app.database.bridge import KINDS, Do, Kind, bridge
from tasks_app.models import File


class DoWithFiles(Do, frozen=True):
    """Any function that reads or writes stored bytes, in a lane of its own: a slow disk holds up nothing else."""


KINDS[DoWithFiles] = Kind(
    lane="files",
    perform=KINDS[Do].perform,
    patient=True,  # A large file takes its time.
    unique=lambda item: None,  # One at a time: nobody waits for the files of others, nor are all of them in memory.
)


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
        content: bytes = await bridge.ask(DoWithFiles(lambda: load(url)))
        return content

    def read_now(self, url: str) -> bytes:
        content: bytes = bridge.do(DoWithFiles(lambda: load(url)))
        return content


run_files = RunFiles()
"""One reader for all runs."""


class FindFile(Struct, frozen=True):
    """The row of a file that has not been forgotten."""

    id: str


def find_many(items: Sequence[FindFile]) -> list[File | None]:
    found = {row.id: row for row in File.objects.filter(pk__in={item.id for item in items}).exclude(holder="")}
    return [found.get(item.id) for item in items]


KINDS[FindFile] = Kind(lane="read", repeatable=True, perform=find_many)
