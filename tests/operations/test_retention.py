"""Deleting what is past its time: how much, how fast, by whom, and when not."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import orjson
import psycopg
import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError
from django.db import OperationalError, connection
from msgspec.structs import replace

from tasks_app import clock
from tasks_app.database.sql import on_postgres
from tasks_app.models import (
    Act,
    Delivery,
    DeliveryTry,
    DirectReply,
    Event,
    Exchange,
    ExchangeBody,
    IdempotencyKey,
    Process,
    Refusals,
    Run,
    SocketTicket,
    Task,
    Webhook,
)
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.upkeep import deletion
from tasks_app.upkeep import retention as module
from tasks_app.upkeep.deletion import MAX_ROWS, MIN_ROWS, SQLITE_MAX_ROWS, SQLITE_MIN_ROWS, Deletion, Step
from tasks_app.upkeep.portions import Portion
from tasks_app.upkeep.processes import confirm_clock, process_row
from tasks_app.upkeep.retention import LAG_LIMIT, Retention, troubles
from tasks_app.upkeep.row_kinds import ROW_KINDS
from tests.conftest import Person
from tests.operations.old_rows import DAY, add_ticket, complete, fill, of, purged
from tests.operations.rows import forget

pytestmark = [pytest.mark.django_db, pytest.mark.storage, pytest.mark.usefixtures("own_entry")]


def left() -> dict[str, int]:
    models = (Task, Event, Run, IdempotencyKey, Exchange, ExchangeBody, DirectReply, Refusals)
    found = {model.__name__: model.objects.count() for model in models}
    return found | {"Event": Event.objects.values("task_id").distinct().count()}


def all_of(number: int) -> dict[str, int]:
    return dict.fromkeys(left(), number)


@pytest.mark.requirement("ZONE-20")
def test_all_that_is_old_goes_in_one_round_and_nothing_else(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "FIRST_ROWS", 3)
    monkeypatch.setattr(deletion, "MAX_ROWS", 3)
    monkeypatch.setattr(deletion, "SQLITE_MAX_ROWS", 3)
    monkeypatch.setattr(deletion, "MIN_ROWS", 3)
    monkeypatch.setattr(deletion, "SQLITE_MIN_ROWS", 3)
    fill(owner, 10, 31 * DAY)
    fill(owner, 2, timedelta(hours=1))
    fill(owner, 1, 32 * DAY, open_=True)
    forget()
    found = left()
    assert found.pop("Task") == found.pop("Event") == found.pop("Run") == 3, "one of them has not ended"
    assert set(found.values()) == {2}


def test_a_task_with_many_events_and_deliveries_goes_in_several_steps(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(owner, 3, 31 * DAY)
    (first, *_) = Task.objects.order_by("id").values_list("id", flat=True)
    hook = Webhook.objects.create(
        id="h",
        task_id=first,
        name="h",
        version="1.0",
        url="http://x/",
        host="x",
        created_at=clock.now(),
        updated_at=clock.now(),
    )
    for seq in range(7):
        done = Delivery.objects.create(
            id=f"{first[:-1]}{seq}",
            webhook=hook,
            task_id=first,
            seq=seq,
            version="1.0",
            body="{}",
            state="dead",
            created_at=clock.now(),
        )
        DeliveryTry.objects.create(delivery=done, attempt=1, at=clock.now(), duration_ms=1)
    tasks, before = Deletion(ROW_KINDS["tasks"]), clock.now() - 30 * DAY
    counts = []
    for _ in range(4):
        tasks.rows = 4
        stepped = tasks.delete_next(before)
        assert stepped
        counts.append((stepped.portion.count, Delivery.objects.count()))
    assert counts == [(0, 3), (2, 0), (1, 0), (0, 0)]
    assert [model.objects.count() for model in (Task, Webhook, DeliveryTry)] == [0, 0, 0]


def test_steps_are_as_large_as_they_are_fast() -> None:
    keys = Deletion(ROW_KINDS["message_ids"])

    def after(seconds: float, *, more: bool = True) -> int:
        keys._adapt(Step(Portion(1, "", more), seconds))
        return keys.rows

    assert [after(0.0001), after(0.0001)] == [260, 338]
    assert after(0.0001) == 439
    assert after(10) == 219
    assert after(0.0001, more=False) == 219, "a step that had too few rows says nothing"
    for _ in range(20):
        after(10)
    assert keys.rows == (MIN_ROWS if on_postgres() else SQLITE_MIN_ROWS)
    for _ in range(20):
        after(0.0001)
    assert keys.rows == (MAX_ROWS if on_postgres() else SQLITE_MAX_ROWS)


def test_nothing_is_deleted_while_the_clock_is_in_doubt(owner: Person) -> None:
    fill(owner, 2, 400 * DAY)
    clock.anchor.shift -= int(2 * 86_400 * 1e9)
    forget()
    assert left() == all_of(2)
    clock.anchor.shift = clock.anchor.wall
    process_row.gap = "the rows are still to come"
    forget()
    assert left() == all_of(2)
    process_row.gap = ""
    forget()
    assert left() == all_of(0)


def test_the_lag_of_deleting_is_measured_and_reported(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "FIRST_ROWS", 2)
    fill(owner, 5, 40 * DAY)
    retention = Retention()
    for kind_pass in retention.passes:
        kind_pass.begin()
        kind_pass.advance()
    behind = {kind_pass.kind.name: round(kind_pass.lag / 86_400) for kind_pass in retention.passes}
    empty = ("audit", "refused_calls", "receivers", "deliveries", "shared_streams", "slack_questions", "memory")
    zero = dict.fromkeys((*empty, "secrets", "sessions", "usage", "workflows"), 0)
    ages = {"message_ids": 39, "tickets": 40, "refusals": 33, "exchanges": 33, "replies": 10, "tasks": 10}
    assert behind == ages | zero
    monkeypatch.setattr(process_row, "lag", LAG_LIMIT + 1)
    assert "61 s after their time" in troubles()[0]
    retention.run_round()
    assert left() == all_of(0)
    assert troubles() == []


def test_tickets_go_at_their_end_and_not_before(owner: Person) -> None:
    fill(owner, 3, timedelta(seconds=1))
    add_ticket(owner, "unused", clock.now() + timedelta(seconds=60))
    forget()
    assert [ticket.digest for ticket in SocketTicket.objects.all()] == ["unused"]
    assert left() == all_of(3)


def test_sessions_of_operators_go_at_their_end_and_not_before() -> None:
    for name, seconds in ("over", -1), ("open", 60):
        Session.objects.create(session_key=name, session_data="", expire_date=clock.now() + timedelta(seconds=seconds))
    forget()
    assert [session.session_key for session in Session.objects.all()] == ["open"]


def test_rows_passed_over_are_deleted_by_the_next_pass(owner: Person) -> None:
    fill(owner, 1, 31 * DAY, open_=True)
    fill(owner, 1, 30.5 * DAY)
    retention = Retention()
    retention.run_round()
    assert Task.objects.count() == 1
    complete(Task.objects.get().pk, clock.now() - 31 * DAY)
    retention.run_round()
    assert Task.objects.count() == 1, "it begins where it ended"
    for kind_pass in retention.passes:
        kind_pass.began -= 601
    retention.run_round()
    assert Task.objects.count() == 0


def test_a_kind_of_row_that_fails_holds_up_no_other(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(before: datetime, place: str, rows: int) -> Portion:
        raise OperationalError("disk I/O error")

    fill(owner, 1, 40 * DAY)
    retention = Retention()
    monkeypatch.setattr(module, "retention_routine", retention)
    kind = retention.passes[0].deletion.kind
    retention.passes[0].deletion.kind = replace(kind, delete=fail)
    retention.run_round()
    assert left() == all_of(0) | {"IdempotencyKey": 1}
    assert troubles() == []
    retention.run_round()
    assert troubles() == ["retention: deleting message_ids fails, see the log"]
    retention.passes[0].deletion.kind = kind
    retention.run_round()
    assert left() == all_of(0)
    assert troubles() == []


def test_a_round_goes_on_to_no_other_kind_when_its_process_stops(owner: Person) -> None:
    def stop(before: datetime, place: str, rows: int) -> Portion:
        retention.stopping.set()
        raise OperationalError("the database does not answer")

    fill(owner, 1, 40 * DAY)
    retention = Retention()
    retention.passes[0].deletion.kind = replace(retention.passes[0].deletion.kind, delete=stop)
    retention.run_round()
    assert left() == all_of(1)


def test_a_time_that_cannot_be_reckoned_holds_up_no_other(owner: Person, settings: Any) -> None:
    settings.A2A_KEY_HOURS = 99_999_999
    fill(owner, 1, 40 * DAY)
    Retention().run_round()
    assert left() == all_of(0) | {"IdempotencyKey": 1}


@pytest.mark.django_db(transaction=True)
def test_one_process_deletes_at_a_time(owner: Person, lanes: None) -> None:
    if not on_postgres():
        pytest.skip("processes that share a SQLite file delete one after another anyway")
    fill(owner, 2, 31 * DAY)
    given = connection.get_connection_params()
    named = {key: given[key] for key in ("host", "port", "user", "password", "dbname") if given.get(key)}
    with psycopg.connect(**named, autocommit=True) as other:
        other.execute("select pg_advisory_lock(%s)", [deletion.LOCK])
        forget()
        assert IdempotencyKey.objects.count() == 2
        assert process_row.lag is None
        other.execute("select pg_advisory_unlock_all()")
        forget()
        assert left() == all_of(0)
        row = other.execute("select pg_try_advisory_lock(%s)", [deletion.LOCK]).fetchone()
        assert row == (True,), "a round ends with the lock given back"


# ----------------------------------------------------------------- purge


def test_a_dry_purge_counts_and_deletes_nothing(owner: Person) -> None:
    fill(owner, 3, 8 * DAY)
    lines = purged("--dry-run")
    assert of(lines, "would_delete") == dict.fromkeys(ROW_KINDS, 0) | {
        "message_ids": 3,
        "tickets": 3,
        "refusals": 3,
        "exchanges": 3,
    }
    assert left() == all_of(3)


@pytest.mark.parametrize(
    ("option", "gone"),
    [
        ("--tasks", {"Task", "Event", "Run", "DirectReply"}),
        ("--exchanges", {"Exchange", "ExchangeBody", "Refusals"}),
        ("--keys", {"IdempotencyKey"}),
    ],
)
def test_a_purge_deletes_what_is_chosen(owner: Person, option: str, gone: set[str]) -> None:
    fill(owner, 3, 2 * DAY)
    fill(owner, 2, timedelta(hours=1))
    lines = purged(option, "--before", "1d")
    assert all(line["done"] for line in lines)
    assert left() == {name: 2 if name in gone else 5 for name in left()}


def test_a_purge_is_one_act_with_its_kinds_bounds_and_counts(owner: Person) -> None:
    fill(owner, 3, 2 * DAY)
    purged("--dry-run")
    assert not Act.objects.exists()
    lines = purged("--exchanges", "--before", "1d", "--operator", "ann", "--reason", "full disk")
    act = Act.objects.get()
    assert (act.operator, act.door, act.verb, act.reason) == ("ann", "command", "purge", "full disk")
    assert (act.kind, act.name) == ("rows", "exchanges, refusals, deliveries")
    assert orjson.loads(act.after) == {
        line["rows"]: {"before": line["before"], "deleted": line["deleted"]} for line in lines
    }
    assert orjson.loads(act.after)["exchanges"]["deleted"] == 3


def test_a_purge_that_is_interrupted_is_an_act_too(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tasks_app.upkeep.purge.Deletion.delete_next", interrupt)
    with pytest.raises(KeyboardInterrupt):
        purged("--keys", "--before", "1d")
    assert orjson.loads(Act.objects.get().after)["message_ids"]["deleted"] == 0


def test_a_purge_without_a_time_goes_by_the_settings(owner: Person) -> None:
    fill(owner, 1, 31 * DAY)
    fill(owner, 1, 8 * DAY)
    confirm_clock(Operator("ann", COMMAND))
    assert of(purged(), "deleted") == dict.fromkeys(ROW_KINDS, 0) | {
        "message_ids": 2,
        "tickets": 2,
        "refusals": 2,
        "exchanges": 2,
        "replies": 1,
        "tasks": 1,
    }


def doubtful_clock() -> None:
    then = clock.now() - 365 * DAY
    Process.objects.create(name="p", role="web", version="1", started_at=then, seen_at=then, steady_at=then)


@pytest.mark.parametrize(
    ("prepare", "arguments", "words"),
    [
        (lambda: None, ["--before", "2999-01-01T00:00"], "is in the future"),
        (doubtful_clock, [], "365 days ago"),
    ],
    ids=["future", "doubt"],
)
def test_a_purge_is_refused(owner: Person, prepare: Callable[[], None], arguments: list[str], words: str) -> None:
    fill(owner, 1, 31 * DAY)
    prepare()
    with pytest.raises(CommandError, match=words):
        purged(*arguments)
    assert left() == all_of(1)


def test_times_of_places_are_read_back(owner: Person) -> None:
    fill(owner, 1, 31 * DAY)
    then: datetime = IdempotencyKey.objects.get().created_at
    for kind in ROW_KINDS.values():
        stepped = kind.delete(clock.now() - 30 * DAY, "", 10)
        if stepped.count:
            assert abs(kind.time_of(stepped.place) - then) < timedelta(milliseconds=1)
