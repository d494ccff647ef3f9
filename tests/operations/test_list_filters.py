"""List with filters: what is found is what a look at every task would find, and no filter reads them all."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.db import connection
from msgspec.structs import replace

from a2a.requests import ListTasks
from a2a.states import TaskState
from tasks_app.database import prepared as statements
from tasks_app.database.sql import on_postgres
from tasks_app.event_log import create_many
from tasks_app.models import Task
from tasks_app.operations import list_rows, list_totals
from tests.conftest import Person
from tests.operations.asking import ask, page
from tests.operations.rows import creation

pytestmark = [pytest.mark.django_db, pytest.mark.storage, pytest.mark.usefixtures("made_up")]
MANY = 3_000
STATES = [TaskState.COMPLETED, TaskState.FAILED, TaskState.WORKING, TaskState.REJECTED]


@pytest.fixture
def made_up(replay: None) -> Iterator[None]:
    """Delete the tasks at the end: their states are none that a log tells of."""
    yield
    Task.objects.all().delete()


def fill(owner: Person, number: int = 60) -> list[Task]:
    """Return tasks of two agents in two contexts and four states, some with equal times; newest first."""
    create_many([creation(owner, f"k{place}") for place in range(number)])
    tasks = list(Task.objects.filter(owner_id=owner.caller.owner_id).order_by("id"))
    start = tasks[0].status_at
    for place, task in enumerate(tasks):
        task.agent = ("echo", "rare")[place % 7 == 0]
        task.context_id = ("here", "there")[place % 3 == 0]
        task.state = STATES[place % 11 % 4].value
        task.status_at = start + timedelta(seconds=place // 2)
    Task.objects.bulk_update(tasks, ["agent", "context_id", "state", "status_at"])
    return sorted(tasks, key=lambda task: (-task.status_at.timestamp(), task.id))


@pytest.mark.parametrize("exact", [5, 1_000])
def test_every_mix_of_filters_finds_what_a_look_at_every_task_finds(
    owner: Person, stranger: Person, monkeypatch: pytest.MonkeyPatch, exact: int
) -> None:
    monkeypatch.setattr(list_totals, "EXACT", exact)
    fill(stranger, 8)
    tasks = fill(owner)
    moment = tasks[20].status_at
    mixes = product((None, "echo", "rare", "none"), (None, "here", "none"), (None, *STATES[:2]), (None, moment))
    for agent, context_id, state, since in mixes:
        wanted = [
            task.id
            for task in tasks
            if (agent is None or task.agent == agent)
            and (context_id is None or task.context_id == context_id)
            and (state is None or task.state == state.value)
            and (since is None or task.status_at >= since)
        ]
        wish = ListTasks(context_id=context_id, state=state, since=since, page_size=7, history_length=0)
        found = ask(owner, wish, agent=agent)
        seen = page(found)
        assert found.total_size == len(wanted) or found.total_size > exact
        while found.next_page_token:
            found = ask(owner, replace(wish, page_token=found.next_page_token), agent=agent)
            seen += page(found)
        assert seen == wanted, (agent, context_id, state, since)


@contextmanager
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Any]]]:
    """Give the statements of lists, with their values."""
    seen: list[tuple[str, Any]] = []

    @contextmanager
    def recorded() -> Iterator[Any]:
        with statements.prepared() as cursor:

            class Recorded:
                def execute(self, sql: str, values: Any) -> None:
                    seen.append((sql, values))
                    cursor.execute(sql, values)

                fetchall, fetchone = staticmethod(cursor.fetchall), staticmethod(cursor.fetchone)

            yield Recorded()

    with monkeypatch.context() as patch:
        for module in (list_rows, list_totals):
            patch.setattr(module, "prepared", recorded)
        yield seen


def test_a_list_of_a_large_agent_counts_no_tasks_again(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_totals, "EXACT", 2)
    fill(owner)
    request = ListTasks(context_id="here", page_size=1)
    total = ask(owner, request, agent="echo").total_size
    with asked(monkeypatch) as seen:
        assert ask(owner, request, agent="echo").total_size == total > 2
    assert seen
    assert not [sql for sql, _ in seen if "count(*)" in sql]


def plan_of(sql: str, values: Any) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"explain {'' if on_postgres() else 'query plan '}{sql}", values)
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


@pytest.mark.parametrize(
    ("agent", "filters"),
    [
        (None, {}),
        (None, {"state": TaskState.REJECTED}),
        (None, {"context_id": "rare"}),
        ("rare", {}),
        ("rare", {"state": TaskState.REJECTED}),
        (None, {"context_id": "rare", "state": TaskState.REJECTED}),
        ("rare", {"context_id": "rare"}),
    ],
)
def test_no_filter_reads_all_tasks_of_an_owner(
    owner: Person, monkeypatch: pytest.MonkeyPatch, agent: str | None, filters: dict[str, Any]
) -> None:
    first = fill(owner, 1)[0]
    Task.objects.update(agent="echo", context_id="here", state="completed")
    columns = ", ".join(field.column for field in Task._meta.fields if field.column != "id")
    numbers = "(with recursive s(n) as (select 1 union all select n + 1 from s where n < %s) select n from s) s"
    with connection.cursor() as cursor:
        copies = f"select 'copy-' || n, {columns} from tasks_app_task, {numbers}"  # noqa: S608  # our own names
        cursor.execute(f"insert into tasks_app_task (id, {columns}) {copies}", [MANY])
        cursor.execute("analyze tasks_app_task")
    with asked(monkeypatch) as seen:
        ask(owner, ListTasks(page_size=1, since=first.status_at, **filters), agent=agent)
        ask(owner, ListTasks(page_size=1, **filters), agent=agent)
    assert seen
    # If all tasks match, any plan may count the first thousand.
    narrow = bool(agent or filters)
    for sql, values in [(sql, values) for sql, values in seen if narrow or "order by" in sql]:
        plan = plan_of(sql, values)
        assert "Seq Scan on tasks_app_task" not in plan, plan
        assert "SCAN t" not in [line[:6] for line in plan.splitlines()], plan
        assert "task_by_" in plan or "task_state" in plan, plan
