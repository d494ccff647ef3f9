"""Migrations that a running process of the version before survives: first migrate, then restart."""

import importlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, models
from django.db.migrations import operations
from django.db.migrations.state import ProjectState
from django.db.models.fields import NOT_PROVIDED

from tasks_app.database import tables
from tasks_app.database.sql import on_postgres
from tasks_app.migrations._online import AddIndexOnline, RemoveIndexOnline
from tasks_app.migrations._texts_last import TEXTS, TextsLast
from tasks_app.models import Event, Task
from tests.conftest import Person
from tests.operations.asking import sent

HERE = Path(__file__).parent
FORMER: dict[str, list[str]] = json.loads((HERE / "support" / "former_columns.json").read_text(encoding="utf-8"))
"""By model: the columns that the version before writes. To be replaced with each release, by those of its rows.py."""
NEXT = 6
"""The number of the first migration that was made after that version."""
GONE = (operations.RemoveField, operations.RenameField, operations.DeleteModel, operations.RenameModel)


on_sqlite = pytest.mark.skipif(on_postgres(), reason="only SQLite reads a row from its beginning")


def migrations() -> Iterator[tuple[str, Any]]:
    folder = HERE.parent / "tasks_app" / "migrations"
    for path in sorted(folder.glob("[0-9]*.py")):
        if int(path.name[:4]) >= NEXT:
            yield path.stem, importlib.import_module(f"tasks_app.migrations.{path.stem}").Migration


MIGRATIONS = list(migrations())


def problem(operation: Any, made: set[str]) -> str:
    """Return why a process of the version before does not survive the operation; nothing if it does."""
    table = str(getattr(operation, "model_name", "")).lower()
    if isinstance(operation, GONE):
        return "the version before still uses what is taken away: stop using it now, take it away in the next release"
    if isinstance(operation, operations.AddField | operations.AlterField) and table not in made:
        field = operation.field
        if not (field.null or field.db_default is not NOT_PROVIDED or _required_before(table, operation)):
            return "the version before does not write this column: give it null=True or db_default"
    locks = isinstance(operation, operations.AddIndex | operations.RemoveIndex | operations.AddConstraint)
    if locks and table not in made and not isinstance(operation, AddIndexOnline | RemoveIndexOnline):
        return "it locks out writers of a large table: use the operations of _online.py"
    return ""


def _required_before(table: str, operation: Any) -> bool:
    """Return an altered column that the version before writes anyway."""
    columns = next((columns for model, columns in FORMER.items() if table in _names(model)), [])
    names = {operation.name, f"{operation.name}_id"}
    return isinstance(operation, operations.AlterField) and bool(names & set(columns))


def _names(model: str) -> set[str]:
    """Return the names that migrations give a model: its own, and the former one that its table still has."""
    return {model.lower(), apps.get_model("tasks_app", model)._meta.db_table.removeprefix("tasks_app_")}


@pytest.mark.parametrize(
    ("name", "migration"), list(migrations()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_migration_leaves_the_running_version_working(name: str, migration: Any) -> None:
    made: set[str] = set()
    for operation in migration.operations:
        made |= {operation.name.lower()} if isinstance(operation, operations.CreateModel) else set()
        assert not problem(operation, made), f"{name}, {operation.describe()}: {problem(operation, made)}"
        if isinstance(operation, AddIndexOnline | RemoveIndexOnline):
            assert not migration.atomic, f"{name}: an index is made online outside of a transaction only"


@pytest.mark.parametrize(
    "operation",
    [
        operations.AddField("task", "x", models.TextField(default="")),
        operations.AddField("task", "y", models.IntegerField()),
        operations.RemoveField("task", "wants"),
        operations.RenameField("task", "wants", "wishes"),
        operations.DeleteModel("DirectReply"),
        operations.AlterField("run", "unknown", models.TextField()),
        operations.AddIndex("task", models.Index(fields=["agent"], name="x")),
    ],
    ids=lambda operation: f"{type(operation).__name__} {getattr(operation, 'name', '')}",
)
def test_an_operation_that_would_break_it_is_found(operation: Any) -> None:
    assert problem(operation, set())
    assert not problem(operations.AddField("task", "x", models.TextField(db_default="")), set())
    assert not problem(operations.AddField("task", "x", models.TextField(null=True)), set())


def _value(field: Any, owner: Person) -> Any:
    known = {"tenant_id": owner.caller.tenant_id, "owner_id": owner.caller.owner_id, "state": "submitted"}
    if field.attname in known:
        return known[field.attname]
    while isinstance(field, models.ForeignKey):
        field = field.target_field
    match field:
        case models.DateTimeField():
            return datetime(2026, 1, 1, tzinfo=UTC)
        case models.BooleanField():
            return False
        case models.IntegerField() | models.FloatField():
            return 1
        case _:
            return "1"


TABLES = [tables.TASKS, tables.EVENTS, tables.RUNS, tables.WEBHOOKS, tables.DELIVERIES]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_rows_and_models_name_the_same_columns_alike(table: tables.Table) -> None:
    (model,) = (model for model in apps.get_app_config("tasks_app").get_models() if model._meta.db_table == table.name)
    columns = {field.attname: field.column for field in model._meta.concrete_fields}
    assert [columns[field] for field in table.fields] == list(table.columns)


@pytest.mark.skipif(not on_postgres(), reason="only PostgreSQL has such indexes")
@pytest.mark.django_db
@pytest.mark.storage
def test_no_row_that_is_written_in_groups_is_in_an_index_for_like() -> None:
    """Django makes one for each text key. These rows are looked up by the whole key, which another index has."""
    written = {table.name for table in vars(tables).values() if isinstance(table, tables.Table)}
    with connection.cursor() as cursor:
        cursor.execute("select tablename from pg_indexes where indexdef like '%_pattern_ops%'")
        assert written & {name for (name,) in cursor.fetchall()} == set()


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_an_index_is_added_and_removed_again_after_an_attempt_that_was_cut_short() -> None:
    """Without a transaction, what was done when the process ended stays, and the migration is not recorded."""
    state = ProjectState.from_apps(apps)
    (index,) = (index for index in Task._meta.indexes if index.name == "task_by_state")

    def names() -> set[str]:
        with connection.cursor() as cursor:
            return set(connection.introspection.get_constraints(cursor, Task._meta.db_table))

    with connection.schema_editor(atomic=False) as editor:
        try:
            for _ in range(2):
                RemoveIndexOnline("task", index.name).database_forwards("tasks_app", editor, state, state)
            assert index.name not in names()
        finally:
            for _ in range(2):
                AddIndexOnline("task", index).database_forwards("tasks_app", editor, state, state)
        assert index.name in names()


@on_sqlite
@pytest.mark.django_db
def test_the_texts_of_a_task_stand_behind_its_other_columns_on_sqlite() -> None:
    """If this fails, the last migration that adds a column to tasks lacks TextsLast."""
    with connection.cursor() as cursor:
        names = [column.name for column in connection.introspection.get_table_description(cursor, Task._meta.db_table)]
    assert tuple(names[-2:]) == TEXTS


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_moving_the_texts_keeps_rows_columns_and_indexes(owner: Person) -> None:
    task = sent(owner, "hello", "echo")

    def shape() -> tuple[Any, ...]:
        with connection.cursor() as cursor:
            cursor.execute(f"pragma table_info({Task._meta.db_table})")
            columns = {row[1:] for row in cursor.fetchall()}
            cursor.execute(
                "select sql from sqlite_master where tbl_name = %s and type = 'index'", [Task._meta.db_table]
            )
            return columns, {row[0] for row in cursor.fetchall()}, Task.objects.values().get(pk=task.id)

    before = shape()
    with connection.schema_editor(atomic=True) as editor:
        TextsLast().database_forwards("tasks_app", editor, ProjectState.from_apps(apps), ProjectState.from_apps(apps))
    assert shape() == before


@pytest.mark.django_db
def test_the_inserts_of_the_version_before_are_taken(owner: Person) -> None:
    for name, columns in FORMER.items():
        model = apps.get_model("tasks_app", name)
        fields = {field.column: field for field in model._meta.concrete_fields}
        missing = [column for column in columns if column not in fields]
        assert not missing, f"{name} has lost columns: {missing}"
        values = [_value(fields[column], owner) for column in columns]
        marks = ", ".join(["%s"] * len(columns))
        with connection.cursor() as cursor:
            cursor.execute(f"insert into {model._meta.db_table} ({', '.join(columns)}) values ({marks})", values)  # noqa: S608
        assert model.objects.count() == 1


@pytest.mark.storage
@pytest.mark.django_db
def test_the_sizes_of_tasks_from_before_the_column_are_counted(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = importlib.import_module("tasks_app.migrations.0031_sizes")
    monkeypatch.setattr(sizes, "BATCH", 2)
    ids = [sent(owner, "x" * length, "echo").id for length in (1, 20, 300, 4_000, 50_000)]
    expected = {task_id: _events_size(task_id) for task_id in ids}
    Task.objects.filter(pk__in=ids[::2]).update(size=0)
    Task.objects.filter(pk=ids[1]).update(size=7)
    for _ in range(2):
        sizes.count_sizes(apps, connection.schema_editor(atomic=False))
        assert dict(Task.objects.values_list("pk", "size")) == expected


def _events_size(task_id: str) -> int:
    return sum(len(payload) for payload in Event.objects.filter(task_id=task_id).values_list("payload", flat=True))


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
def test_users_who_have_one_name_in_different_letters_keep_it() -> None:
    migration = importlib.import_module("tasks_app.migrations.0068_names_of_users")
    with connection.schema_editor() as editor:
        migration.remove(apps, editor)
    pair = [User.objects.create(username=name) for name in ("Vera", "vera")]
    try:
        with connection.schema_editor() as editor:
            migration.add(apps, editor)
        User.objects.create(username="Emil")
        with pytest.raises(IntegrityError):
            User.objects.create(username="emil")
    finally:
        with connection.schema_editor() as editor:
            migration.remove(apps, editor)
        User.objects.filter(pk__in=[user.pk for user in pair]).delete()
        with connection.schema_editor() as editor:
            migration.add(apps, editor)
