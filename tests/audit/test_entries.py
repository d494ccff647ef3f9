"""Entries of the audit: one for each authenticated call that changes something, stored with the change."""

import json
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, transaction

from tasks_app import clock
from tasks_app.audit.deletion import permit_deletion
from tasks_app.database.sql import on_postgres, sql_time
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.ids import uuid7
from tasks_app.models import Act, AuditEntry, Exchange, Workflow
from tests.conftest import PATIENCE, Person
from tests.support.triggers import unguarded
from tests.transports.exchanges.calls import LATER, Post, call, new, old, task_id

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]
on_sqlite_alone = pytest.mark.skipif(on_postgres(), reason="PostgreSQL replaces no row")
on_postgres_alone = pytest.mark.skipif(not on_postgres(), reason="SQLite has neither")
HOUR = timedelta(hours=1)
TRACE = "0af7651916cd43dd8448eb211c80319c"
HOOK = {"id": "mine", "url": "http://127.0.0.1:65001/secret-path", "token": "hunter2"}


@pytest.fixture(autouse=True)
def _begin_empty(service: None) -> None:
    """Delete the entries that were written behind the answers of earlier tests."""
    assert recorder.drain(PATIENCE)
    with unguarded(), connection.cursor() as cursor:
        cursor.execute("delete from tasks_app_auditentry")


def add_act() -> None:
    Act.objects.create(
        at="2026-01-01T00:00:00Z", operator="x", door="admin", verb="v", kind="k", object_id="1", name="n"
    )


def entries(number: int) -> list[AuditEntry]:
    """Return all entries, oldest first."""
    assert recorder.drain(PATIENCE)
    rows = list(AuditEntry.objects.order_by("id"))
    assert len(rows) == number, [str(row) for row in rows]
    return rows


@pytest.mark.requirement("ACP-18", "SPARC-13")
def test_a_send_leaves_an_entry_with_all_that_an_auditor_asks_for(post: Post, owner: Person, settings: Any) -> None:
    settings.A2A_TRUSTED_PROXIES = ["127.0.0.0/8"]
    trace = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "X-Forwarded-For": "203.0.113.7"}
    _, content = post(new(agent="quick-function"), **trace)
    (entry,) = entries(1)
    assert (entry.caller_id, entry.caller, entry.tenant) == (owner.caller.owner_id, "owner", "home")
    assert entry.credential == f"key:{owner.caller.key_id}"
    assert (entry.peer, entry.trace, entry.door) == ("203.0.113.7", TRACE, "http")
    assert (entry.language, entry.method, entry.task_id) == ("a2a-1.0", "SendMessage", task_id(content))
    assert (entry.outcome, entry.code) == ("result", None)
    assert Exchange.objects.get(pk=entry.exchange_id).task_id == entry.task_id


def test_a_refused_change_of_a_shared_stream_has_its_entry(post: Post) -> None:
    _, content = post(acp("stream.start"))
    stream_id = json.loads(content)["result"]["stream"]["streamId"]
    post(acp("stream.end", streamId=stream_id))
    chunk = {"role": "user", "parts": [{"type": "TextPart", "content": "late"}]}
    post(acp("stream.chunk", streamId=stream_id, chunk=chunk, sequence=1))
    post(acp("stream.message", streamId=stream_id, message=chunk))
    post(acp("stream.end", streamId=stream_id))
    codes = [(entry.method, entry.outcome, entry.code) for entry in entries(5)]
    assert codes[:2] == [("stream.start", "result", None), ("stream.end", "result", None)]
    assert sorted(codes[2:]) == [
        ("stream.chunk", "error", -40004),
        ("stream.end", "error", -40004),
        ("stream.message", "error", -40004),
    ]


def test_a_workflow_whose_first_message_is_refused_has_an_entry(post: Post) -> None:
    wire = old()
    wire["params"]["metadata"] = {"agent": "priced", "workflowId": "w"}
    headers = {"X-Budget-USD": "0.1"}
    _, content = post(wire, path="/sparc", **headers)
    assert b"BUDGET_EXCEEDED" in content
    assert Workflow.objects.exists()
    (entry,) = entries(1)
    assert (entry.method, entry.outcome, entry.code) == ("message/send", "error", -38006)


def test_to_follow_a_shared_stream_is_no_change_of_it(post: Post) -> None:
    _, content = post(acp("stream.start"))
    stream_id = json.loads(content)["result"]["stream"]["streamId"]
    post(acp("stream.start", streamId=stream_id))
    post(acp("stream.end", streamId=stream_id))
    _, content = post(acp("stream.start", streamId=stream_id, afterSequence=0), Accept="text/event-stream")
    assert b"closed" in content
    assert [entry.method for entry in entries(2)] == ["stream.start", "stream.end"]


def acp(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}


@pytest.mark.parametrize("agent", ["quick-function", "echo", "replies", "form-coroutine"])
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("more", [{}, LATER], ids=["waits", "at once"])
def test_a_change_has_one_entry_however_it_is_answered(post: Post, agent: str, method: str, more: Any) -> None:
    wire = new(agent=agent, method=method, **more)
    post(wire)
    (first,) = entries(1)
    assert first.outcome == "result"
    # A message that was sent before changes nothing. The call has an entry all the same.
    post(wire)
    entries(2)


def test_each_kind_of_change_has_an_entry(post: Post, owner: Person, settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True
    _, content = post(new(agent="asks"))
    task = task_id(content)
    post(call("CreateTaskPushNotificationConfig", {"taskId": task, **HOOK}))
    post(call("DeleteTaskPushNotificationConfig", {"taskId": task, "id": "mine"}))
    post(new("blue", task=task, agent="asks"))
    _, content = post(new(agent="asks"))
    post(call("CancelTask", {"id": task_id(content)}))
    post({"taskId": task}, path="/links")
    post(b"", path="/ws/ticket")
    rows = entries(8)
    assert [(row.method, row.webhook) for row in rows] == [
        ("SendMessage", ""),
        ("CreateTaskPushNotificationConfig", "mine"),
        ("DeleteTaskPushNotificationConfig", "mine"),
        ("SendMessage", ""),
        ("SendMessage", ""),
        ("CancelTask", ""),
        ("links/create", ""),
        ("tickets/create", ""),
    ]
    assert {row.credential for row in rows} == {f"key:{owner.caller.key_id}"}


def test_reads_and_strangers_have_no_entry(post: Post, owner: Person) -> None:
    _, content = post(new(agent="quick-function"))
    post(call("GetTask", {"id": task_id(content)}))
    post(call("ListTasks", {}))
    post(call("SubscribeToTask", {"id": task_id(content)}))
    post(new(), key="tdk_unknown")
    post(new(), key=None)
    post(call("no/such/method", {}))
    post(b"{")
    entries(1)


def test_a_change_that_fails_has_an_entry_with_its_code(
    post: Post, owner: Person, colleague: Person, stranger: Person
) -> None:
    _, content = post(new(agent="quick-function"))
    task = task_id(content)
    for person in (owner, colleague, stranger):
        post(call("CancelTask", {"id": task}), key=person.key)
    rows = entries(4)[1:]
    assert [(row.caller, row.outcome, row.code) for row in rows] == [
        ("owner", "error", -32002),
        ("colleague", "error", -32001),
        ("stranger", "error", -32001),
    ]
    assert {row.task_id for row in rows} == {task}


def test_a_notification_and_each_member_of_a_batch_have_an_entry(post: Post) -> None:
    silent = new(agent="quick-function")
    del silent["id"]
    post(silent)
    post([new(agent="quick-function", rpc_id=2), old(agent="echo", rpc_id=3), call("ListTasks", {}, 4)])
    assert [row.language for row in entries(3)].count("a2a-1.0") == 2


@pytest.mark.requirement("ACP-18")
def test_an_entry_has_neither_bodies_nor_secrets(post: Post, owner: Person, settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True
    wire = new("the canary hunter2", agent="echo", configuration={"pushNotificationConfig": HOOK})
    wire["params"]["metadata"]["token"] = "hunter2"
    post(wire, **{"X-Custom": "hunter2", "A2A-Version": "1.0"})
    post(old("hunter2", rpc_id="hunter2"))
    assert recorder.drain(PATIENCE)
    stored = json.dumps(list(AuditEntry.objects.values()), default=str)
    for canary in ("hunter2", "canary", "secret-path", owner.key):
        assert canary not in stored


def test_a_setting_switches_the_entries_off(post: Post, settings: Any) -> None:
    settings.A2A_AUDIT = False
    post(new(agent="quick-function"))
    post(new(agent="echo"))
    post(call("CancelTask", {"id": "none"}))
    entries(0)


def test_the_entry_stays_when_the_record_of_the_call_is_refused(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    halves = OpenExchange.halves

    def broken(exchange: OpenExchange, result: Any) -> Any:
        row, body = halves(exchange, result)
        row.rpc_id_type = None  # type: ignore[assignment,union-attr]  # what no database takes
        return row, body

    monkeypatch.setattr(OpenExchange, "halves", broken)
    status, _ = post(new(agent="quick-function"))
    assert status == 200
    recorder.flush()
    entries(1)
    assert not Exchange.objects.exists()


@pytest.mark.parametrize("statement", ["update {} set door = 'x'", "delete from {}"])
@pytest.mark.parametrize("model", [AuditEntry, Act])
def test_the_database_refuses_to_change_or_delete(post: Post, model: Any, statement: str) -> None:
    post(new(agent="quick-function"))
    add_act()
    with pytest.raises(DatabaseError, match="retention"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.format(model._meta.db_table))
    assert model.objects.count() == 1
    for act in (model.objects.get().delete, model.objects.all().delete, lambda: model.objects.update(door="x")):
        with pytest.raises(TypeError, match=r"are not \w+"):
            act()


@on_sqlite_alone
@pytest.mark.parametrize("statement", ["insert or replace", "replace", "insert or ignore", "insert"])
@pytest.mark.parametrize(("model", "key"), [(AuditEntry, "id"), (AuditEntry, "rowid"), (Act, "id")])
def test_the_database_replaces_no_row(post: Post, model: Any, key: str, statement: str) -> None:
    post(new(agent="quick-function"))
    add_act()
    table, before = model._meta.db_table, list(model.objects.values())
    others = [field.column for field in model._meta.concrete_fields if field.column not in {"id", "door"}]
    forged = {column: column for column in (key, *others)} | {"door": "'forged'"}
    if key == "rowid":
        forged["id"] = "'other'"
    with pytest.raises(DatabaseError, match="this id is taken"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"{statement} into {table} ({', '.join(forged)}) select {', '.join(forged.values())} from {table}"  # noqa: S608
        )
    assert list(model.objects.values()) == before


@on_sqlite_alone
def test_a_row_with_an_odd_id_stops_no_further_ones(post: Post) -> None:
    columns = "rowid, id, created_at, caller_id, caller, tenant_id, tenant, credential, door, method, outcome"
    with connection.cursor() as cursor:
        cursor.execute(
            f"insert into tasks_app_auditentry ({columns}, exchange_id) "  # noqa: S608
            "values (-1, 'x', '2026-01-01', 1, '', 1, '', '', '', '', '', '')"
        )
    Act.objects.create(id=-1, at="2026-01-01T00:00:00Z", operator="", door="", verb="", kind="", object_id="", name="")
    post(new(agent="quick-function"))
    add_act()
    entries(2)
    assert Act.objects.count() == 2


@on_sqlite_alone
def test_the_triggers_of_ids_are_undone_and_made_again(post: Post) -> None:
    ids = import_module("tasks_app.migrations.0067_audit_ids")
    post(new(agent="quick-function"))
    again = "insert or ignore into tasks_app_auditentry select * from tasks_app_auditentry"
    try:
        with connection.schema_editor() as editor:
            ids.unguard(apps, editor)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(again)
    finally:
        with connection.schema_editor() as editor:
            ids.guard(apps, editor)
    with pytest.raises(DatabaseError, match="this id is taken"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(again)
    entries(1)


def test_the_triggers_are_undone_and_made_again(post: Post) -> None:
    first, floor = (import_module(f"tasks_app.migrations.{name}") for name in ("0040_audit", "0062_audit_floor"))
    post(new(agent="quick-function"))
    try:
        with connection.schema_editor() as editor:
            floor.drop_floor(apps, editor)
        # Without the floor, retention may delete this entry.
        with permit_deletion(), connection.cursor() as cursor:
            cursor.execute("delete from tasks_app_auditentry")
            assert cursor.rowcount == 1
            transaction.set_rollback(True)
        with connection.schema_editor() as editor:
            first.unguard(apps, editor)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("update tasks_app_auditentry set door = 'x'")
    finally:
        with connection.schema_editor() as editor:
            first.guard(apps, editor)
            floor.raise_floor(apps, editor)
    with pytest.raises(DatabaseError, match="retention"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("update tasks_app_auditentry set door = 'y'")
    assert AuditEntry.objects.get().door == "x"


@pytest.mark.parametrize(
    ("model", "statement"),
    [
        (AuditEntry, "delete from {}"),
        (AuditEntry, "update {} set door = 'x'"),
        (Act, "delete from {}"),
        (Act, "update {} set door = 'x'"),
        pytest.param(AuditEntry, "truncate {}", marks=on_postgres_alone),
        pytest.param(Act, "truncate {}", marks=on_postgres_alone),
    ],
)
def test_a_permit_opens_neither_young_entries_nor_acts(post: Post, model: Any, statement: str) -> None:
    post(new(agent="quick-function"))
    add_act()
    with pytest.raises(DatabaseError, match="retention"), permit_deletion(), connection.cursor() as cursor:
        cursor.execute(statement.format(model._meta.db_table))
    assert model.objects.count() == 1


@on_postgres_alone
def test_no_function_of_another_schema_opens_young_entries(post: Post) -> None:
    post(new(agent="quick-function"))
    with permit_deletion(), connection.cursor() as cursor:
        cursor.execute("create schema other")
        cursor.execute(
            "create function other.now() returns timestamptz language sql as 'select ''2100-01-01''::timestamptz'"
        )
        cursor.execute("set local search_path = other, pg_catalog, public")
        with pytest.raises(DatabaseError, match="retention"), transaction.atomic():
            cursor.execute("delete from public.tasks_app_auditentry")
        transaction.set_rollback(True)
    entries(1)


def test_a_permit_opens_entries_of_a_day_ago(post: Post) -> None:
    post(new(agent="quick-function"))
    (entry,) = entries(1)
    for hours in (22, 24):
        AuditEntry.objects.create(**columns_of(entry) | {"id": uuid7(), "created_at": clock.now() - hours * HOUR})
    with permit_deletion(), connection.cursor() as cursor:
        cursor.execute("delete from tasks_app_auditentry where created_at < %s", [sql_time(clock.now() - 23 * HOUR)])
        assert cursor.rowcount == 1
    entries(2)


def columns_of(entry: AuditEntry) -> dict[str, Any]:
    return {field.attname: getattr(entry, field.attname) for field in entry._meta.concrete_fields}


def test_a_permit_of_deletion_ends_with_its_transaction(post: Post) -> None:
    post(new(agent="quick-function"))
    with permit_deletion():
        pass
    with pytest.raises(DatabaseError, match="retention"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("delete from tasks_app_auditentry")
    entries(1)
