"""Files in the storage and in the table."""

from django.core.files.storage import storages

from a2a.types import Part, Task
from tasks_app.files import path_of
from tasks_app.models import File

BIG = bytes(range(256)) * 400
PDF = Part(raw=BIG, filename="report.pdf", media_type="application/pdf")


def stored_paths() -> set[str]:
    """Return the paths in the storage."""
    try:
        days = storages["files"].listdir("")[0]
    except FileNotFoundError:
        return set()
    return {f"{day}/{name}" for day in days for name in storages["files"].listdir(day)[1]}


def rows() -> set[str]:
    return {path_of(row.id) for row in File.objects.all()}


def only(task: Task) -> Part:
    """Return the one part of the task's one artifact."""
    (artifact,) = task.artifacts
    (part,) = artifact.parts
    return part
