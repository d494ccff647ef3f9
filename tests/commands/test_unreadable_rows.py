"""The doctor names rows that it cannot read, and examines all others."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from django.db import OperationalError, connection

from tasks_app import clock
from tasks_app.doctor import Examination, Finding, examination, examine, guard, logs, work
from tasks_app.models import Event, Process, Task
from tests.commands.doctoring import AGO, doctor, process, worked_on
from tests.conftest import Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("open_lanes")]
Change = Callable[[str], Any]


def _event(**values: Any) -> Change:
    return lambda task_id: Event.objects.filter(task_id=task_id, seq=3).update(**values)


def _row(**values: Any) -> Change:
    return lambda task_id: Task.objects.filter(pk=task_id).update(**values)


def misuse(*_: Any) -> Iterator[Finding]:
    """Execute a statement that fails, after which PostgreSQL refuses all others of its transaction."""
    with connection.cursor() as cursor:
        cursor.execute("select nonsense")
    yield from ()


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (_event(payload='{"x":'), "event 3 cannot be read: orjson.JSONDecodeError"),
        (_event(payload="{}"), "event 3 cannot be read: KeyError: 'artifact'"),
        (_event(payload="[]"), "event 3 cannot be read: "),
        (_event(kind="bogus"), "event 3 cannot be read: AssertionError"),
        (_event(kind="task", payload='{"x":'), "event 3 cannot be read: orjson.JSONDecodeError"),
        (_row(snapshot_seq=2, artifacts="{"), "its snapshot cannot be read: orjson.JSONDecodeError"),
    ],
    ids=["half of it", "empty", "a list", "kind", "kind and half of it", "snapshot"],
)
def test_a_row_that_cannot_be_read_hides_nothing_else(owner: Person, damage: Change, problem: str) -> None:
    gap, broken = worked_on(owner, key="gap"), worked_on(owner, key="broken")
    Event.objects.filter(task_id=gap, seq=3).delete()
    damage(broken)
    findings, end, code = doctor()
    assert [(found["kind"], found["subject"]) for found in findings] == [("log", broken), ("log", gap)]
    assert findings[0]["problem"].startswith(f"The log of task {broken}: {problem}")
    assert "Keep a copy of the database" in findings[0]["remedy"]
    assert (end, code) == ({"tasks": 2, "findings": 2}, 1)


def test_an_unreadable_event_does_not_hide_a_gap_behind_it(owner: Person) -> None:
    task_id = worked_on(owner)
    Event.objects.filter(task_id=task_id, seq=1).update(payload="")
    Event.objects.filter(task_id=task_id, seq=4).delete()
    gap, unreadable = (found["problem"] for found in doctor()[0])
    assert "events 4 of 5 are missing" in gap
    assert "event 1 cannot be read" in unreadable


def test_only_some_of_many_unreadable_events_are_named(owner: Person) -> None:
    task_id = worked_on(owner)
    Event.objects.filter(task_id=task_id).update(payload="{")
    now = clock.now()
    further = [Event(task_id=task_id, seq=seq, kind="x", payload="{", created_at=now) for seq in range(6, 20)]
    Event.objects.bulk_create(further)
    Task.objects.update(last_seq=19)
    problems = [found["problem"] for found in doctor()[0]]
    assert len(problems) == logs.MOST
    assert "event 5 cannot" in problems[-1]


def test_events_that_make_no_task_are_found(owner: Person) -> None:
    task_id = worked_on(owner)
    later = Event.objects.get(task_id=task_id, seq=4)
    Event.objects.filter(task_id=task_id, seq=1).update(kind=later.kind, payload=later.payload)
    assert ["has no event that creates a task" in found["problem"] for found in doctor()[0]] == [True]


def test_an_examination_of_one_task_that_fails_is_a_finding(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    gap, broken = worked_on(owner, key="gap"), worked_on(owner, key="broken")
    Event.objects.filter(task_id=gap, seq=3).delete()
    monkeypatch.setattr(logs, "read_many", lambda items: list(misuse()))
    first, last = doctor()[0]
    assert (first["kind"], first["subject"], last["subject"]) == ("log", broken, gap)
    assert f"The examination of task {broken} failed: " in first["problem"]
    assert "nonsense" in first["problem"]


def test_a_process_whose_row_cannot_be_read_hides_no_other(transactional_db: None) -> None:
    name = process(troubles="[", name="a")
    process(troubles='["runner: agent x hangs in x.py:3"]', name="b")
    first, last = doctor()[0]
    assert (first["kind"], first["subject"]) == ("process", name)
    assert "The examination of process a failed: orjson.JSONDecodeError" in first["problem"]
    assert (last["kind"], last["subject"]) == ("process", "b")
    assert Process.objects.count() == 2


@pytest.mark.parametrize("part", [*examination.PARTS, "the memory", "logs"])
def test_a_part_that_fails_is_a_finding(owner: Person, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    task_id = worked_on(owner)
    Event.objects.filter(task_id=task_id, seq=3).delete()
    Task.objects.update(lease_until=clock.now() - AGO)
    process(lag=36_000.0)
    if part in examination.PARTS:
        monkeypatch.setitem(examination.PARTS, part, misuse)
    else:
        monkeypatch.setattr(examination, {"logs": "examine_logs", "the memory": "examine_memory"}[part], misuse)
    findings, end, code = doctor()
    kinds = {"processes": "retention", "work": "lease", "logs": "log"}
    expected = {"retention", "lease", "log", "doctor"} - {kinds.get(part)}
    assert {found["kind"] for found in findings} == expected
    assert [found["subject"] for found in findings if found["kind"] == "doctor"] == [part]
    assert (end["findings"], code) == (len(expected), 1)


def test_work_of_one_kind_that_cannot_be_examined_hides_no_other(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_find_leases", misuse)
    monkeypatch.setattr(work, "_find_webhooks", misuse)
    assert [found["subject"] for found in doctor()[0]] == ["leases", "webhooks"]


def test_a_database_that_is_gone_ends_the_examination(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def cursor(self) -> Any:
            raise OperationalError("the connection is closed")

    def lose(now: datetime) -> Iterator[Finding]:
        yield from ()
        raise OperationalError("the connection was lost")

    monkeypatch.setitem(examination.PARTS, "work", lose)
    monkeypatch.setattr(guard, "connection", Gone())
    with pytest.raises(OperationalError, match="is closed"):
        list(examine(None, Examination()))


def test_an_error_in_a_finding_is_one_short_line_without_secrets() -> None:
    words = guard.describe(ValueError("a\nkey tdk_" + "x" * 43 + " y" * 500))
    assert words.startswith("ValueError: a key ")
    assert "xxxx" not in words
    assert len(words) == guard.LONGEST
