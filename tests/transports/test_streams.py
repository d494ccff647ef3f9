"""Streams: how long they stay open, and what ends them besides the end of their task."""

import asyncio
import json
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.http import StreamingHttpResponse
from django.test import AsyncRequestFactory

from a2a import sse
from tasks_app.callers.access import revoke
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.models import ApiKey
from tasks_app.transports import streams
from tasks_app.transports.enveloped import jsonrpc
from tests.conftest import PATIENCE, Person
from tests.operations.asking import message, sent
from tests.transports.interrupted import interrupted, nothing

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def streamed(person: Person, meanwhile: Callable[[], Awaitable[Any]] = nothing) -> list[bytes]:
    """Return the whole stream of an agent that works until it is stopped; something happens after its first event."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]}
    wire = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
    headers = {"Authorization": f"Bearer {person.key}"}
    request = AsyncRequestFactory().post("/", json.dumps(wire), content_type="application/json", headers=headers)
    return interrupted(person, jsonrpc(request, agent="waits"), meanwhile)


def test_a_stream_ends_when_its_key_is_revoked(owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.A2A_PING_SECONDS = 0.05
    monkeypatch.setattr(streams, "KEY_SECONDS", 0.05)
    seen = streamed(owner, lambda: bridge.ask(Do(lambda: revoke(ApiKey.objects.all()))))
    assert seen[-1] == sse.REVOCATION
    assert sse.REVOCATION not in seen[:-1]


def test_a_stream_ends_when_its_scope_is_taken_away(
    owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_PING_SECONDS = 0.05
    monkeypatch.setattr(streams, "KEY_SECONDS", 0.05)
    seen = streamed(owner, lambda: bridge.ask(Do(lambda: ApiKey.objects.update(scopes="tasks:read tasks:cancel"))))
    assert seen[-1] == sse.REVOCATION
    assert sse.REVOCATION not in seen[:-1]


def test_a_stream_ends_when_its_evidence_leads_to_another_principal(
    owner: Person, colleague: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An operator may link a user to another one.
    settings.A2A_PING_SECONDS = 0.05
    monkeypatch.setattr(streams, "KEY_SECONDS", 0.05)
    keys = ApiKey.objects.filter(principal_id=owner.caller.owner_id)
    seen = streamed(owner, lambda: bridge.ask(Do(lambda: keys.update(principal_id=colleague.caller.owner_id))))
    assert seen[-1] == sse.REVOCATION
    assert sse.REVOCATION not in seen[:-1]


def test_a_stream_stays_open_for_so_long_and_no_longer(owner: Person, settings: Any) -> None:
    settings.A2A_STREAM_SECONDS, settings.A2A_PING_SECONDS = 0.3, 0.05
    began = time.monotonic()
    seen = streamed(owner)
    assert time.monotonic() - began >= settings.A2A_STREAM_SECONDS
    assert sse.PING in seen
    assert seen[-1] == sse.TOO_LONG
    assert sse.TOO_LONG not in seen[:-1]


async def test_a_stream_whose_client_is_slow_keeps_nothing_beside_what_it_sends(owner: Person) -> None:
    text = "x" * 500_000
    task = await asyncio.to_thread(sent, owner, message(text), "echo")
    wire = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task.id}}
    headers = {"Authorization": f"Bearer {owner.key}", "Last-Event-ID": "1"}
    response = await jsonrpc(
        AsyncRequestFactory().post("/", json.dumps(wire), content_type="application/json", headers=headers)
    )
    assert isinstance(response, StreamingHttpResponse)
    chunks: Any = aiter(response.streaming_content)  # type: ignore[arg-type]
    await anext(chunks)
    tracemalloc.start()
    try:
        chunk = await anext(chunks)
        assert len(chunk) > len(text)
        # The threads that read and encoded the event may hold it for a moment longer.
        async with asyncio.timeout(PATIENCE):
            while tracemalloc.get_traced_memory()[0] > 1.5 * len(chunk):  # noqa: ASYNC110  # no Event there
                await asyncio.sleep(0.01)
    finally:
        tracemalloc.stop()
    await chunks.aclose()
