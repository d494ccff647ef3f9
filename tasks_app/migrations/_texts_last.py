"""The order of the columns of tasks on SQLite: large texts stand behind all others."""

from typing import Any

from django.db.migrations.operations import RunPython

TEXTS = ("artifacts", "history")
_LAST = 1_000_000_000


def _put_texts_last(apps: Any, schema_editor: Any) -> None:
    """Rebuild the table of tasks with the texts behind its other columns.

    SQLite keeps a large row in a chain of pages, and follows the chain to every column behind a large one: of a task of
    megabytes, it read megabytes to find the owner. PostgreSQL keeps large texts in a table of their own.
    """
    if schema_editor.connection.vendor != "sqlite":
        return
    task = apps.get_model("tasks_app", "Task")
    for place, name in enumerate(TEXTS):
        # Django puts columns into the order in which their fields were made.
        task._meta.get_field(name).creation_counter = _LAST + place
    schema_editor._remake_table(task)


class TextsLast(RunPython):
    """The last operation of a migration that adds a column to tasks. SQLite puts a new column behind the texts."""

    def __init__(self) -> None:
        super().__init__(_put_texts_last, RunPython.noop)
