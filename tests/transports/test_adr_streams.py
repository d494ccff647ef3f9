"""Streams of ADR-002 that end before their task. Their events show no state, so each such end is an error."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from django.test import AsyncRequestFactory

from a2a import sse
from tasks_app.callers.access import revoke
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.event_log.readers import readers
from tasks_app.exchanges.recording import recorder
from tasks_app.models import ApiKey, Exchange, Task
from tasks_app.transports import streams
from tasks_app.transports.enveloped import enveloped
from tests.conftest import PATIENCE, Person
from tests.transports.interrupted import interrupted, nothing

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
COMMENTS = (sse.REVOCATION, sse.TOO_LONG, sse.DRAINING)


async def drain() -> None:
    readers.draining = True


async def revoke_keys() -> None:
    await bridge.ask(Do(lambda: revoke(ApiKey.objects.all())))


async def take_scope_away() -> None:
    await bridge.ask(Do(lambda: ApiKey.objects.update(scopes="tasks:read tasks:cancel")))


@pytest.fixture(autouse=True)
def often(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often for a reason to end a stream."""
    settings.A2A_PING_SECONDS = 0.05
    monkeypatch.setattr(streams, "KEY_SECONDS", 0.05)


def last_event(person: Person, meanwhile: Callable[[], Awaitable[None]]) -> Any:
    """Return the error that ends the stream of an agent which works until it is stopped."""
    wire = orjson.dumps({"jsonrpc": "2.0", "id": 7, "method": "waits", "params": {"text": "go"}})
    headers = {"Authorization": f"Bearer {person.key}", "X-Request-ID": "r-1"}
    request = AsyncRequestFactory().post("/invoke/stream", wire, "application/json", headers=headers)
    seen = interrupted(person, enveloped("invoke-stream")(request), meanwhile)
    assert not set(COMMENTS) & set(seen)
    head, _, data = seen[-1].partition(b"\ndata: ") if seen[-1].startswith(b"event") else (b"", b"", b"{}")
    assert head == b"event: error", seen[-1]
    answer = orjson.loads(data)
    assert answer["id"] == 7
    return answer["error"]


def test_an_adr_stream_that_was_open_for_too_long_ends_with_a_timeout(owner: Person, settings: Any) -> None:
    settings.A2A_STREAM_SECONDS = 0.3
    error = last_event(owner, nothing)
    assert (error["code"], error["data"]["reason"], error["data"]["taskId"]) == (
        -32002,
        "TIMEOUT",
        Task.objects.get().id,
    )
    assert recorder.drain(PATIENCE)
    assert Exchange.objects.get(method="invoke/stream").code == -32002


def test_an_adr_stream_of_a_server_that_stops_ends_with_an_error_that_may_pass(owner: Person) -> None:
    error = last_event(owner, drain)
    assert (error["code"], error["data"]["reason"]) == (-32000, "AGENT_UNAVAILABLE")
    assert error["data"]["retryable"] is True


@pytest.mark.parametrize(
    ("act", "code", "reason"),
    [(revoke_keys, -38009, "UNAUTHENTICATED"), (take_scope_away, -38010, "MISSING_SCOPE")],
)
def test_an_adr_stream_whose_credential_ends_says_so(
    owner: Person, act: Callable[[], Awaitable[None]], code: int, reason: str
) -> None:
    error = last_event(owner, act)
    assert (error["code"], error["data"]["reason"]) == (code, reason)
