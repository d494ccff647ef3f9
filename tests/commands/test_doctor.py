"""The doctor finds each kind of damage, names it and its remedy, and finds nothing in a system that is well."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError

from a2a.states import TaskState
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.models import Delivery, Event, Task, Webhook
from tests.commands.doctoring import AGO, doctor, process, worked_on
from tests.conftest import Person
from tests.operations.rows import addition, status
from tests.operations.webhooks import hooked, task
from tests.support.commands import text_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("open_lanes")]


def test_a_system_that_is_well_has_no_findings(owner: Person) -> None:
    worked_on(owner)
    findings, end, code = doctor()
    assert (findings, end, code) == ([], {"tasks": 1, "findings": 0}, 0)
    assert text_of("a2a", "doctor") == "Nothing is wrong; 1 log checked.\n"


def _loses(seq: int) -> Callable[[str], Any]:
    return lambda task_id: Event.objects.filter(task_id=task_id, seq=seq).delete()


def _says(**values: Any) -> Callable[[str], Any]:
    return lambda task_id: Task.objects.filter(pk=task_id).update(**values)


def _ends_twice(task_id: str) -> None:
    Event.objects.filter(task_id=task_id, seq=4).update(state="failed")
    Event.objects.filter(task_id=task_id, seq=5).update(state="failed")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (_loses(3), "events 3 of 5 are missing"),
        (_loses(5), "events 5 of 5 are missing"),
        (_loses(1), "events 1 of 5 are missing"),
        (_says(last_seq=4), "there is an event 5, but the row says that event 4 is the last"),
        (_says(state="completed"), "by its events it is working, but the row says completed"),
        (_says(status="{}"), "its last status is not that of the row"),
        (_says(snapshot_seq=2, artifacts="[]"), "all its events together give another task than its snapshot"),
        (_ends_twice, "it ended with event 4, and has 5 events"),
        (_says(snapshot_seq=999), "its snapshot_seq is 999, but the row says that event 5 is the last"),
        (_says(joined_seq=6), "its joined_seq is 6, but the row says that event 5 is the last"),
        (_says(run_seq=6), "its run_seq is 6, but the row says that event 5 is the last"),
        (_says(message_seq=6), "its message_seq is 6, but the row says that event 5 is the last"),
    ],
    ids=[
        *("gap", "end", "beginning", "beyond", "state", "status", "snapshot", "two ends"),
        *("snapshot ahead", "joined ahead", "run ahead", "message ahead"),
    ],
)
def test_a_log_that_is_not_what_the_row_says_is_found(
    owner: Person, damage: Callable[[str], Any], problem: str
) -> None:
    worked_on(owner, key="whole")
    task_id = worked_on(owner, key="damaged")
    if problem.startswith("all its events"):
        Task.objects.filter(pk=task_id).update(snapshot_status=Task.objects.get(pk=task_id).status)
    damage(task_id)
    findings, end, code = doctor()
    assert code == 1
    assert end == {"tasks": 2, "findings": len(findings)}
    assert {(found["kind"], found["subject"]) for found in findings} == {("log", task_id)}
    assert any(problem in found["problem"] for found in findings), findings
    assert all(found["remedy"] for found in findings)


def test_only_the_logs_asked_for_are_folded_the_newest_first(owner: Person) -> None:
    old, new = worked_on(owner, key="old"), worked_on(owner, key="new")
    Event.objects.filter(task_id=old, seq=3).delete()
    assert doctor("--tasks", "1")[1:] == ({"tasks": 1, "findings": 0}, 0)
    Event.objects.filter(task_id=new, seq=3).delete()
    findings, end, _ = doctor("--all")
    assert [found["subject"] for found in findings] == [new, old]
    assert end == {"tasks": 2, "findings": 2}


def test_a_lease_that_nobody_took_up_is_found_after_a_while(owner: Person) -> None:
    task_id = worked_on(owner)
    now = clock.now()
    Task.objects.filter(pk=task_id).update(lease_until=now - timedelta(seconds=1))
    assert doctor()[0] == []
    Task.objects.filter(pk=task_id).update(lease_until=now - AGO)
    (found,), _, code = doctor()
    assert (found["kind"], found["subject"], code) == ("lease", task_id, 1)


def test_a_task_past_its_deadline_is_found(owner: Person) -> None:
    task_id = worked_on(owner)
    Task.objects.filter(pk=task_id).update(deadline=clock.now() - AGO, lease_until=clock.now() + AGO)
    (found,), _, _ = doctor()
    assert (found["kind"], found["subject"]) == ("lease", task_id)


def test_a_lease_that_ends_too_late_is_found(owner: Person, settings: Any) -> None:
    task_id = worked_on(owner)
    end = clock.now() + AGO + timedelta(seconds=settings.A2A_LEASE_SECONDS)
    Task.objects.filter(pk=task_id).update(lease_until=end - timedelta(seconds=5))
    assert doctor()[0] == []
    Task.objects.filter(pk=task_id).update(lease_until=end + timedelta(minutes=5))
    (found,) = doctor()[0]
    assert (found["kind"], found["subject"]) == ("lease", task_id)
    assert "later than any process sets" in found["problem"]


def test_a_task_that_changed_in_the_future_is_found(owner: Person) -> None:
    task_id = task(owner)
    Task.objects.filter(pk=task_id).update(status_at=clock.now() + AGO - timedelta(seconds=5))
    assert doctor("--tasks", "0")[0] == []
    Task.objects.filter(pk=task_id).update(status_at=clock.now() + AGO + timedelta(minutes=5))
    (found,) = doctor("--tasks", "0")[0]
    assert (found["kind"], found["subject"]) == ("task", task_id)
    assert "in the future" in found["problem"]


def test_a_working_task_without_a_lease_is_found(owner: Person) -> None:
    task_id = worked_on(owner)
    Task.objects.filter(pk=task_id).update(lease_until=None, lease_owner=None, status_at=clock.now() - AGO)
    (found,) = [found for found in doctor("--tasks", "0")[0] if found["kind"] == "task"]
    assert found["subject"] == task_id
    assert f"tasks cancel {task_id}" in found["remedy"]


@pytest.mark.parametrize(
    ("agent", "remedy"), [("tries-twice", "workers of queue default"), ("nobody", "A2A_AGENT_MODULES")]
)
def test_a_task_that_waits_too_long_is_found(owner: Person, agent: str, remedy: str) -> None:
    task_id = task(owner)
    assert doctor("--tasks", "0")[0] == []
    Task.objects.filter(pk=task_id).update(agent=agent, status_at=clock.now() - AGO)
    (found,) = doctor("--tasks", "0")[0]
    assert (found["kind"], found["subject"]) == ("task", task_id)
    assert remedy in found["remedy"]


def test_a_task_whose_pause_has_just_ended_does_not_wait_too_long(owner: Person) -> None:
    now = clock.now()
    Task.objects.filter(pk=task(owner)).update(status_at=now - AGO, not_before=now - timedelta(seconds=5))
    assert doctor("--tasks", "0")[0] == []
    Task.objects.update(not_before=now - timedelta(seconds=90))
    (found,) = doctor("--tasks", "0")[0]
    assert "waits for 9" in found["problem"]


def test_the_closing_sentence_counts(owner: Person) -> None:
    task_id = task(owner)
    Task.objects.filter(pk=task_id).update(status_at=clock.now() - AGO)
    with pytest.raises(CommandError, match=r"^1 finding; 1 log checked\.$"):
        text_of("a2a", "doctor")


def test_a_webhook_that_nobody_tries_is_found(owner: Person, settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True
    task_id = hooked(owner, "http://127.0.0.1:65001/")
    webhook = Webhook.objects.get(task_id=task_id)
    assert doctor()[0] == []
    Webhook.objects.update(due_at=clock.now() - AGO)
    (found,) = doctor()[0]
    assert (found["kind"], found["subject"]) == ("delivery", webhook.pk)


def test_deliveries_that_no_time_is_set_for_are_found(owner: Person, settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True
    task_id = hooked(owner, "http://127.0.0.1:65001/")
    bridge.do(addition(task_id, status(TaskState.WORKING)))
    assert Delivery.objects.filter(state="waiting").count() == 1
    Delivery.objects.update(created_at=clock.now() - AGO)
    Webhook.objects.update(due_at=None)
    (found,) = doctor()[0]
    assert (found["kind"], found["subject"]) == ("delivery", Webhook.objects.get().pk)
    assert "retry" in found["remedy"]


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        ({"clock_off": 90.0}, "clock", "differs from the database's by +90 s"),
        ({"clock_off": -3600.0}, "clock", "-3600 s"),
        ({"clock_off": -90.0, "troubles": '["clock: it is said twice"]'}, "clock", "-90 s"),
        ({"lag": 36_000.0}, "retention", "deleted 10.0 h late"),
        ({"troubles": '["runner: agent x hangs in x.py:3"]'}, "process", "agent x hangs in x.py:3"),
    ],
)
def test_troubles_in_the_row_of_a_process_are_found(
    transactional_db: None, values: dict[str, Any], kind: str, words: str
) -> None:
    name = process(**values)
    (found,), _, code = doctor()
    assert (found["kind"], found["subject"], code) == (kind, name, 1)
    assert words in found["problem"]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"clock_off": 30.0, "lag": 5.0},
        {"clock_off": 90.0, "ended_at": clock.now()},
        {"clock_off": 90.0, "seen_at": clock.now() - AGO},
    ],
    ids=["well", "a little off", "ended", "long gone"],
)
def test_a_process_that_is_well_or_gone_is_no_finding(transactional_db: None, values: dict[str, Any]) -> None:
    process(**values)
    assert doctor()[0] == []


def test_the_doctor_takes_no_lock_and_writes_nothing(owner: Person) -> None:
    worked_on(owner)
    before = list(Task.objects.values()) + list(Event.objects.values())
    doctor("--all")
    assert list(Task.objects.values()) + list(Event.objects.values()) == before
