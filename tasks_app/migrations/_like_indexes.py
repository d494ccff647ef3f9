"""Indexes that Django makes by itself on PostgreSQL, and that nothing uses."""

from collections.abc import Sequence
from typing import Any

from django.db.migrations.operations import RunPython


class DropLikeIndexes(RunPython):
    """Drop the second index for LIKE that Django gives every text key on PostgreSQL.

    The rows of these tables are looked up by the whole key only, and each new row would pay for it. Django makes such
    an index at the end of a migration, after all its operations, so that this takes a later migration. That one has
    `atomic = False`.
    """

    def __init__(self, models: Sequence[str]) -> None:
        self.tables = [f"tasks_app_{model}" for model in models]
        super().__init__(self.drop, RunPython.noop, elidable=False)

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        """Return how a migration writes the operation."""
        return type(self).__name__, [[table.removeprefix("tasks_app_") for table in self.tables]], {}

    def drop(self, apps: Any, schema_editor: Any) -> None:
        """Drop the indexes, as far as they are there."""
        if schema_editor.connection.vendor != "postgresql":
            return
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                "select quote_ident(indexname) from pg_indexes "
                "where schemaname = current_schema() and tablename = any(%s) and indexname like %s",
                [self.tables, r"%\_like"],
            )
            names = cursor.fetchall()
            # Wait for older transactions as long as need be, and let writers go on meanwhile.
            cursor.execute("set lock_timeout = 0")
            for (name,) in names:
                cursor.execute(f"drop index concurrently if exists {name}")
            cursor.execute("reset lock_timeout")
