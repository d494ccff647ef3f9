"""Refused calls of callers: counted by caller, credential, reason and hour, and not stored one by one."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from msgspec.structs import replace
from websockets import InvalidStatus

from a2a.errors import MissingScope, TooManyCalls
from tasks_app.audit import refused_calls as module
from tasks_app.audit.refused_calls import Counts, refused_calls
from tasks_app.exchanges.recording import recorder
from tasks_app.limits.rate_limits import limits
from tasks_app.limits.rates import Rate
from tasks_app.models import AuditEntry, OAuthClient, Principal, RefusedCalls
from tasks_app.oauth.limits import spend
from tasks_app.process.counting import census
from tasks_app.upkeep.counts import Counts as Routine
from tests.conftest import PATIENCE, Person, person
from tests.support.commands import printed
from tests.support.counts import store_counts
from tests.support.hand import Hand
from tests.transports.exchanges.calls import Post, call, new
from tests.transports.websocket.door import bearer, dialled, next_frame
from tests.transports.websocket.door import call as frame
from tests.transports.websocket.serving import in_a_thread, serving, url
from tests.zones.asking import answers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


@pytest.fixture(autouse=True)
def no_counts() -> None:
    store_counts()
    RefusedCalls.objects.all().delete()


def counted() -> list[tuple[str, str, int]]:
    store_counts()
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
@pytest.mark.parametrize("path", ["/message:send", "/v1/message:send", "/tasks/none:cancel"])
def test_missing_scopes_are_counted_over_rest(post: Post, path: str) -> None:
    status, _ = post(new()["params"], key=person("reader", "home", "tasks:read").key, path=path)
    assert (status, counted()) == (403, [("reader", "MISSING_SCOPE", 1)])


@pytest.mark.usefixtures("service")
def test_a_limit_is_counted_with_its_address(post: Post, owner: Person, settings: Any) -> None:
    settings.A2A_OWNER_TASKS = 1
    settings.A2A_TRUSTED_PROXIES = ["127.0.0.0/8"]
    later = {"configuration": {"returnImmediately": True}}
    census.count()  # No task is refused before the first count.
    for place in range(4):
        post(new(agent="waits", **later), **({"X-Forwarded-For": "203.0.113.7"} if place else {}))
    store_counts()
    (row,) = RefusedCalls.objects.all()
    assert (row.caller, row.credential) == ("owner", f"key:{owner.caller.key_id}")
    assert (row.reason, row.count, row.last_peer) == ("RATE_LIMITED", 3, "203.0.113.7")


@pytest.mark.usefixtures("service")
async def test_frames_and_handshakes_beyond_a_limit_are_counted(owner: Person, settings: Any) -> None:
    async with serving() as server, dialled(url(server), **bearer(owner.key)) as client:
        settings.A2A_SOCKET_CALLS, settings.A2A_OWNER_SOCKETS = 0, 1
        await client.send(frame(1, "GetTask", {"id": "none"}))
        assert (await next_frame(client))["error"]["code"] == -38008
        assert await in_a_thread(counted) == [("owner", "RATE_LIMITED", 1)]
        with pytest.raises(InvalidStatus):
            async with dialled(url(server), **bearer(owner.key)):
                pass
        assert await in_a_thread(counted) == [("owner", "RATE_LIMITED", 2)]


@pytest.mark.usefixtures("service")
def test_questions_of_a_chat_that_are_refused_are_counted_and_have_no_entry(owner: Person) -> None:
    with pytest.raises(MissingScope):
        answers(Person(owner.key, replace(owner.caller, scopes=frozenset({"tasks:read"}))))
    assert counted() == [("owner", "MISSING_SCOPE", 1)]
    assert recorder.drain(PATIENCE)
    assert not AuditEntry.objects.exists()


def test_requests_to_the_oauth_server_beyond_a_limit_are_counted(
    owner: Person, lanes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(limits.rules, ("caller", owner.caller.owner_id), Rate(0.001, 1))
    limits.forget()
    principal = Principal.objects.select_related("tenant").get(pk=owner.caller.owner_id)
    client = OAuthClient(pk=7, principal=principal)
    spend(client, 1, "10.0.0.1")
    with pytest.raises(TooManyCalls):
        spend(client, 1, "10.0.0.1")
    limits.forget()
    store_counts()
    (row,) = RefusedCalls.objects.all()
    assert (row.caller, row.credential, row.last_peer, row.count) == ("owner", "oauth:7", "10.0.0.1", 1)


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
