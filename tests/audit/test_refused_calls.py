"""Refused calls of callers: counted by caller, credential, reason and hour, and not stored one by one."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError

from tasks_app.audit import refused_calls as module
from tasks_app.audit.refused_calls import Counts, refused_calls
from tasks_app.exchanges.recording import recorder
from tasks_app.models import AuditEntry, RefusedCalls
from tasks_app.upkeep.counts import Counts as Routine
from tests.conftest import PATIENCE, Person, person
from tests.support.commands import printed
from tests.support.hand import Hand
from tests.transports.exchanges.calls import Post, call, new

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


@pytest.fixture(autouse=True)
def no_counts() -> None:
    refused_calls.flush()
    RefusedCalls.objects.all().delete()


def counted() -> list[tuple[str, str, int]]:
    refused_calls.flush()
    return sorted(RefusedCalls.objects.values_list("caller", "reason", "count"))


@pytest.mark.usefixtures("service")
def test_missing_scopes_are_counted_and_have_no_entry(post: Post, owner: Person) -> None:
    reader = person("reader", "home", "tasks:read")
    for _ in range(5):
        post(new(), key=reader.key)
        post({"taskId": "t"}, key=person("writer", "home", "tasks:write").key, path="/links")
    post(call("ListTasks", {}), key=reader.key)
    assert counted() == [("reader", "MISSING_SCOPE", 5), *[("writer", "MISSING_SCOPE", 1)] * 5]
    assert recorder.drain(PATIENCE)
    assert not AuditEntry.objects.exists()


@pytest.mark.usefixtures("service")
def test_a_limit_is_counted_with_its_address(post: Post, owner: Person, settings: Any) -> None:
    settings.A2A_OWNER_TASKS = 1
    settings.A2A_TRUSTED_PROXIES = ["127.0.0.0/8"]
    later = {"configuration": {"returnImmediately": True}}
    for place in range(4):
        post(new(agent="waits", **later), **({"X-Forwarded-For": "203.0.113.7"} if place else {}))
    (row,) = (refused_calls.flush(), RefusedCalls.objects.all())[1]
    assert (row.caller, row.credential) == ("owner", f"key:{owner.caller.key_id}")
    assert (row.reason, row.count, row.last_peer) == ("RATE_LIMITED", 3, "203.0.113.7")


def test_each_hour_and_each_process_adds_to_its_own_count(owner: Person, lanes: None, hand: Hand) -> None:
    start = hand().replace(minute=59, second=59, microsecond=0)
    hand.time = start
    one, other = Counts(), Counts()
    for counts in (one, other, one):
        counts.count(owner.caller, "RATE_LIMITED", "10.0.0.1")
    one.flush()
    other.flush()
    hand.on(seconds=1)
    other.count(owner.caller, "RATE_LIMITED", None)
    other.flush()
    assert [row["count"] for row in printed("a2a", "audit", "export")] == [3, 1]
    rows = list(RefusedCalls.objects.order_by("hour").values_list("hour", "count", "last_at"))
    hour = start.replace(minute=0, second=0)
    later = hour + timedelta(hours=1)
    assert rows == [(hour, 3, start), (later, 1, later)]


def test_counts_wait_for_a_database_that_is_away(owner: Person, lanes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, store = Counts(), module._store

    def refuse(_: Any) -> None:
        raise OperationalError("away")

    counts.count(owner.caller, "RATE_LIMITED", "10.0.0.1")
    monkeypatch.setattr(module, "_store", refuse)
    with pytest.raises(OperationalError):
        counts.flush()
    counts.count(owner.caller, "RATE_LIMITED", "10.0.0.2")
    monkeypatch.setattr(module, "_store", store)
    counts.flush()
    (row,) = RefusedCalls.objects.all()
    assert (row.count, row.last_peer) == (2, "10.0.0.2")


def test_a_process_that_stops_stores_its_counts(owner: Person, lanes: None) -> None:
    routine = Routine()
    routine.start()
    refused_calls.count(owner.caller, "RATE_LIMITED", None)
    routine.stop()
    assert RefusedCalls.objects.get().count == 1


def test_counts_of_callers_have_a_bound(owner: Person, lanes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    counts = Counts()
    for reason in ("A", "B", "C", "A"):
        counts.count(owner.caller, reason, None)
    counts.flush()
    assert sorted(RefusedCalls.objects.values_list("reason", "count")) == [("A", 2), ("B", 1)]
