"""Indexes of large tables, made and removed while the service runs: on PostgreSQL without a lock that writers wait for.

A migration that uses them has `atomic = False`, and does nothing else that could fail half-way.
"""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import AddIndex, RemoveIndex


def _on_postgres(schema_editor: BaseDatabaseSchemaEditor) -> bool:
    return schema_editor.connection.vendor == "postgresql"


def _patiently(schema_editor: BaseDatabaseSchemaEditor, sql: str = "") -> None:
    """Waits for older transactions as long as need be: given up half-way, an index stays behind that is not valid."""
    schema_editor.execute("set lock_timeout = 0")
    if sql:
        schema_editor.execute(sql)


class AddIndexOnline(AddIndexConcurrently):
    """AddIndexConcurrently on PostgreSQL, AddIndex elsewhere; both also after an attempt that was cut short."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        name = schema_editor.quote_name(self.index.name)
        if not _on_postgres(schema_editor):
            schema_editor.execute(f"drop index if exists {name}")
            AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)
            return
        _patiently(schema_editor, f"drop index concurrently if exists {name}")
        super().database_forwards(app_label, schema_editor, from_state, to_state)
        schema_editor.execute("reset lock_timeout")

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if not _on_postgres(schema_editor):
            AddIndex.database_backwards(self, app_label, schema_editor, from_state, to_state)
            return
        super().database_backwards(app_label, schema_editor, from_state, to_state)


class RemoveIndexOnline(RemoveIndexConcurrently):
    """RemoveIndexConcurrently on PostgreSQL, RemoveIndex elsewhere; both also after an attempt that was cut short."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if not _on_postgres(schema_editor):
            schema_editor.execute(f"drop index if exists {schema_editor.quote_name(self.name)}")
            return
        _patiently(schema_editor)
        super().database_forwards(app_label, schema_editor, from_state, to_state)
        schema_editor.execute("reset lock_timeout")

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if not _on_postgres(schema_editor):
            RemoveIndex.database_backwards(self, app_label, schema_editor, from_state, to_state)
            return
        super().database_backwards(app_label, schema_editor, from_state, to_state)
