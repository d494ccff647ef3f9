"""Streams and waiting calls, in each language and at each door, end when their key is revoked or loses their scope."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple

import pytest

from a2a import sse
from a2a.requests import CancelTask, StreamInvoke, StreamMessage, SubscribeToTask
from a2a.states import UNFINISHED
from a2a.workflows import StreamInPhase
from tasks_app.callers.access import revoke
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.models import ApiKey, Task
from tasks_app.transports import streams, waiting
from tasks_app.transports.waiting import Unfinished
from tests.conftest import PATIENCE, Person, person
from tests.operations.asking import ask
from tests.operations.webhooks import task
from tests.support.every_method import SOCKETS, SPEAKERS, WISHES, kinds_of, post, speaker
from tests.support.speaker import Json, Speaker
from tests.transports.websocket.door import bearer, dialled, next_frame, parameters
from tests.transports.websocket.serving import in_a_thread, serving, url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
EVENTS = {"Accept": "application/json, text/event-stream"}
CHANGES: dict[str, Callable[[Any], Any]] = {
    "revoked": revoke,
    "without its scope": lambda keys: keys.update(scopes="weather"),
}
"""The changes of the key of a call that is under way."""
SENDING = (StreamMessage, StreamInvoke, StreamInPhase)
WITH_STREAMS = [
    name
    for name, (_, _, language) in SPEAKERS.items()
    if language == "acp" or kinds_of(language) & {*SENDING, SubscribeToTask}
]
WITH_WAITS = [name for name in SPEAKERS if name != "ACP"]
"""The speakers of languages whose calls may wait for their task."""


class Holder(NamedTuple):
    """A caller with a key of its own."""

    me: Speaker
    key_id: int

    async def lose(self, change: str) -> None:
        await bridge.ask(Do(lambda: CHANGES[change](ApiKey.objects.filter(pk=self.key_id))))


def holder(name: str) -> Holder:
    found = person("owner", "home")
    assert found.caller.key_id is not None
    return Holder(speaker(name, found.key), found.caller.key_id)


@pytest.fixture(autouse=True)
def _soon(owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check keys again and again, and end the tasks of the test."""
    settings.A2A_PING_SECONDS = 0.05
    for module in (streams, waiting):
        monkeypatch.setattr(module, "KEY_SECONDS", 0.05)
    yield
    for row in Task.objects.filter(state__in=UNFINISHED):
        ask(owner, CancelTask(id=row.id))


def following(me: Speaker, name: str, owner: Person) -> list[Json]:
    """Return the calls of a language that follow something without an end."""
    if name == "ACP":
        return [me.call("begin", {}), me.call("push", {"taskId": task(owner)})]
    kinds = kinds_of(SPEAKERS[name][2])
    sending = [me.call(WISHES[kind], me.sending("hello", agent="waits")) for kind in SENDING if kind in kinds]
    return [*sending, *([me.call("subscribe", {"id": task(owner)})] if SubscribeToTask in kinds else [])]


async def rest_of(one: Holder, verb: str, path: str, body: bytes, change: str) -> list[bytes]:
    """Return what a stream sends after its key has changed."""
    headers = one.me.headers(**EVENTS)
    async with asyncio.timeout(PATIENCE), one.me.door.ask(verb, path, body, headers) as reply:
        assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream"), (verb, path, body)
        await anext(reply.chunks)
        await one.lose(change)
        return [chunk async for chunk in reply.chunks]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", WITH_STREAMS)
def test_a_stream_over_http_ends_with_its_key(owner: Person, name: str, change: str) -> None:
    for number in range(len(following(speaker(name, owner.key), name, owner))):
        one = holder(name)
        wire = following(one.me, name, owner)[number]
        end = asyncio.run(rest_of(one, *one.me.request_of(wire), change))[-1]
        if name == "ADR-002":  # Its events show no state, so that each end is one.
            assert end.startswith(b"event: error\n"), end
            assert (b"UNAUTHENTICATED" if change == "revoked" else b"MISSING_SCOPE") in end
        else:
            assert end == sse.REVOCATION, wire["method"]


@pytest.mark.parametrize("change", CHANGES)
def test_the_stream_of_a_call_by_its_id_ends_with_its_key(owner: Person, change: str) -> None:
    one = holder("SPARC")
    wire = one.me.call("send", one.me.sending("hello", agent="waits", now=True))
    status, headers, _ = post(one.me, wire)
    assert status == 200
    path = f"/stream/{headers['x-request-id']}"
    assert asyncio.run(rest_of(one, "GET", path, b"", change))[-1] == sse.REVOCATION


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", [name for name in SOCKETS if name in WITH_STREAMS])
async def test_a_stream_on_a_socket_ends_with_its_key(owner: Person, name: str, change: str) -> None:
    """The socket itself looks at its key later, so that the stream tells its end."""
    calls = await in_a_thread(lambda: following(speaker(name, owner.key), name, owner))
    async with serving() as server:
        for wire in calls:
            one = await in_a_thread(lambda: holder(name))
            async with dialled(url(server), **bearer(one.me.key)) as client:
                await client.send(json.dumps(wire | parameters(one.me.version)))
                assert "result" in await next_frame(client), wire["method"]
                await one.lose(change)
                while (frame := await next_frame(client)).get("method") != "stream/end":
                    pass
                assert frame["params"] == {"id": wire["id"], "reason": "revoked", "resume": False}, wire["method"]


async def outcome(chunks: AsyncIterator[bytes]) -> bytes:
    """Return the rest of an answer; no bytes if it is broken off."""
    try:
        return b"".join([chunk async for chunk in chunks])
    except Unfinished:
        return b""


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", WITH_WAITS)
def test_a_call_that_waits_ends_with_its_key(owner: Person, name: str, change: str) -> None:
    one = holder(name)
    verb, path, body = one.me.request_of(one.me.call("send", one.me.sending("hello", agent="waits")))

    async def answered() -> bytes:
        async with one.me.door.ask(verb, path, body, one.me.headers()) as reply:
            return await outcome(reply.chunks)

    async def story() -> bytes:
        async with asyncio.timeout(PATIENCE):
            waits = asyncio.ensure_future(answered())
            while not await bridge.ask(Do(Task.objects.exists)):  # noqa: ASYNC110  # another thread makes it
                await asyncio.sleep(0.01)
            await one.lose(change)
            return await waits

    rest = asyncio.run(story())
    assert not rest or json.loads(rest)["error"], rest
