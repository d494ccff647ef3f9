"""Connections that break, and plans that a server keeps for them."""

from collections.abc import Sequence
from typing import Self

import pytest
from django.conf import settings as django_settings
from django.db import OperationalError, connection, transaction
from msgspec import Struct

from tasks_app.callers.access import sight
from tasks_app.database import prepared as statements
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import Busy, may_pass
from tasks_app.database.sql import on_postgres
from tasks_app.database.work import Do, DoApart, DoSlowly, Work
from tasks_app.event_log import ReadTask, read_many
from tasks_app.models import Task
from tests.conftest import Person
from tests.database.locks import needs_row_locks, other_connection, stall
from tests.database.rows import create_task
from tests.operations.rows import addition, chunk

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.storage,
    pytest.mark.usefixtures("new_sessions", "lanes"),
]
keeps_plans = pytest.mark.skipif(not on_postgres(), reason="SQLite has no server that keeps plans")


@needs_row_locks
def test_lanes_whose_connections_were_cut_while_idle_answer_the_next_call(owner: Person) -> None:
    task_id = create_task(owner)
    for turn in range(2):
        assert bridge.do(ReadTask(task_id=task_id, sight=None))
        assert bridge.do(addition(task_id, chunk("a"))).seq == turn + 2
        with other_connection() as other:
            other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and pid <> all(%s)",
                (
                    django_settings.DATABASES["default"]["NAME"],
                    [other.info.backend_pid, connection.connection.info.backend_pid],
                ),
            )


@needs_row_locks
@pytest.mark.parametrize("repeatable", [True, False])
def test_work_in_a_transaction_that_stalled_is_repeated_where_that_is_harmless(repeatable: bool) -> None:
    """PostgreSQL ends the session of a transaction that is idle for as long as a lease. The caller may come again."""
    turns: list[int] = []

    class Stalling(Work[str], Struct, frozen=True):
        lane = "write"

        @classmethod
        def do_many(cls, items: Sequence[Self]) -> list[str]:
            turns.append(len(turns))
            with transaction.atomic(), connection.cursor() as cursor:
                if turns == [0]:
                    stall()
                cursor.execute("select 'done'")
                return [text for (text,) in cursor.fetchall()]

    Stalling.repeatable = repeatable
    if repeatable:
        assert bridge.do(Stalling()) == "done"
    else:
        # Busy, or that the connection was closed: what the server says last may be lost with it.
        with pytest.raises(OperationalError) as raised:
            bridge.do(Stalling())
        assert may_pass(raised.value), "callers get 503"
        assert bridge.do(Stalling()) == "done", "on a new session"
    assert turns == [0, 1]


@pytest.mark.skipif(not on_postgres(), reason="SQLite has no server that could stop a statement")
@pytest.mark.parametrize("kind", [Do, DoSlowly, DoApart])
@pytest.mark.parametrize("limit", ["0", "1ms"], ids=["by an operator", "by a limit of the server"])
def test_a_statement_that_the_server_stops_is_not_said_to_have_met_our_limit(kind: type[Do[None]], limit: str) -> None:
    def stop() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("select set_config('statement_timeout', %s, true)", [limit])
            cursor.execute("select pg_sleep(60) where %s != '0' or pg_cancel_backend(pg_backend_pid())", [limit])

    with pytest.raises(Busy) as refusal:
        bridge.do(kind(stop))
    assert refusal.value.facts["detail"] == "the database stopped the work: by a limit of its own, or for an operator"


@keeps_plans
def test_a_table_that_was_altered_under_plans_that_are_kept_is_read_on(owner: Person) -> None:
    task_id = create_task(owner)
    look = ReadTask(task_id=task_id, sight=None)
    before = [bridge.do(look) for _ in range(20)][-1]
    with connection.cursor() as cursor:
        cursor.execute("alter table tasks_app_task alter column context_id type varchar(300)")
    try:
        assert bridge.do(look) == before
        assert bridge.do(addition(task_id, chunk("a"))).seq == 2
        assert bridge.do(look).document.seq == 2
    finally:
        with connection.cursor() as cursor:
            cursor.execute("alter table tasks_app_task alter column context_id type varchar(255)")


@keeps_plans
def test_a_plan_that_is_kept_does_not_outlive_the_growth_of_its_table(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "FRESH", 0.0)
    task_id = create_task(owner)
    looks = [ReadTask(task_id=task_id, sight=sight(owner.caller, task_id))]
    columns = ", ".join(field.column for field in Task._meta.fields if field.column != "id")
    copies = f"select 'copy-' || n, {columns} from tasks_app_task, generate_series(1, 5000) n"  # noqa: S608  # our own
    try:
        with connection.cursor() as cursor:
            # By default PostgreSQL keeps a plan only if it expects no better one from planning again.
            cursor.execute("set plan_cache_mode = force_generic_plan")
            for _ in range(20):
                read_many(looks)
            cursor.execute(f"insert into tasks_app_task (id, {columns}) {copies}")
            read_many(looks)
            cursor.execute("select name, generic_plans from pg_prepared_statements where statement like '%snapshot%'")
            ((name, kept),) = cursor.fetchall()
            cursor.execute(f"explain execute {name} (array['x'], array['x'])")
            plan = "\n".join(line for (line,) in cursor.fetchall())
            cursor.execute("reset plan_cache_mode")
    finally:
        Task.objects.filter(id__startswith="copy-").delete()
    assert kept > 10
    assert "Index" in plan, plan
