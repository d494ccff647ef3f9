"""Tasks of others cannot be told from tasks that do not exist: the answers are equal byte for byte.

Generated from the table of operations, for each language and door, and for two askers: a colleague in the tenant of the
owner, and a stranger in another tenant.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from a2a.batches import ExecuteBatch
from a2a.languages import ALL
from a2a.memory import DeleteMemory, ListMemory, RetrieveMemory, SearchMemory, StoreMemory
from a2a.requests import (
    Describe,
    EndSharedStream,
    FollowSharedStream,
    GetExtendedCard,
    GetPushConfig,
    ListTasks,
    NotifyOfTask,
    SendChunk,
    SendToSharedStream,
    StartSharedStream,
)
from a2a.workflows import ExecuteWorkflow, GetCapabilities, GetWorkflow, SetPhase
from tasks_app.exchanges.recording import recorder
from tasks_app.ids import uuid7
from tasks_app.models import Event, IdempotencyKey, Task, Webhook
from tests.conftest import PATIENCE, Person
from tests.operations.asking import sent
from tests.operations.webhooks import hook
from tests.support.every_method import (
    ENVELOPED,
    SOCKETS,
    SPEAKERS,
    WITH_TASKS,
    Sample,
    post,
    samples,
    speaker,
    speakers_of,
)
from tests.support.speaker import Json, Speaker
from tests.transports.websocket.door import bearer, dialled, parameters
from tests.transports.websocket.serving import in_a_thread, serving, url

pytestmark = pytest.mark.django_db(transaction=True)
URL = "http://127.0.0.1:65009/hook"
WITHOUT_ID = {
    *(ListTasks, GetExtendedCard, Describe, NotifyOfTask, ExecuteBatch),
    *(StoreMemory, RetrieveMemory, ListMemory, DeleteMemory, SearchMemory),
    *(SetPhase, ExecuteWorkflow, GetWorkflow, GetCapabilities),
    *(StartSharedStream, FollowSharedStream, SendToSharedStream, SendChunk, EndSharedStream),
}
"""The operations that ask about no task of this server."""
DATES = re.compile(r'"timestamp":"[^"]*"')
"""The time of an error, in languages that show it."""
UUIDS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The ids of new tasks and contexts."""
AGENTS = ["quick-coroutine", "asks-quickly"]
"""The agents of the owner's tasks: one has ended, and one waits for an answer."""
Ids = tuple[str, str]
"""A task and a webhook of it."""


@pytest.fixture(autouse=True)
def many(settings: Any) -> Iterator[None]:
    """Allow many webhooks, also on this machine. No exchange of this test comes late into another one."""
    settings.A2A_OWNER_WEBHOOKS, settings.A2A_OUTBOUND_LOOPBACK = 10_000, True
    yield
    assert recorder.drain(PATIENCE)


def stored() -> list[Any]:
    counts = [model.objects.count() for model in (Task, Event, IdempotencyKey)]
    return [*counts, *Webhook.objects.order_by("id").values_list("name", "state")]


def tasks_of(owner: Person) -> list[Ids]:
    ids = [sent(owner, agent=agent).id for agent in AGENTS]
    return [(task, hook(owner, task, URL).id or "") for task in ids]


def asking(name: str, key: str, ids: Ids) -> tuple[Speaker, list[Sample]]:
    """Return a speaker, and its calls about a task and a webhook. The calls differ by nothing but these ids."""
    me = speaker(name, key)
    calls = list(samples(me, SPEAKERS[name][2], *ids, URL, follows=True))
    return me, [call for call in calls if call.request not in WITHOUT_ID]


def plain(answer: Any, ids: Ids) -> str:
    """Return an answer without the ids that its call names, and without the time of day."""
    text = DATES.sub("", str(answer))
    for place, id in zip("TW", ids, strict=True):
        text = text.replace(id, place * len(id))
    return text


def answers(name: str, key: str, ids: Ids) -> list[str]:
    """Return the answers to each call: status, headers and body."""
    me, calls = asking(name, key, ids)
    found = [plain(post(me, call.wire, **{"X-Request-ID": "r"}), ids) for call in calls]
    if me.has_envelope:
        batch = [call.wire for call in calls if not call.request.streaming]
        found.append(plain(post(me, batch, **{"X-Request-ID": "r"}), ids))
    if has_notifications(name):
        silent = [{member: value for member, value in call.wire.items() if member != "id"} for call in calls]
        found += [plain(post(me, wire, **{"X-Request-ID": "r"}), ids) for wire in silent]
    return found


def has_notifications(name: str) -> bool:
    """Return whether the language of an enveloped speaker has calls without an answer."""
    return name in ENVELOPED and not ALL.by_name[SPEAKERS[name][2]].needs_id


def nothing() -> Ids:
    return uuid7(), uuid7()


@pytest.mark.parametrize("asker", ["colleague", "stranger"])
@pytest.mark.parametrize("name", WITH_TASKS)
def test_a_foreign_task_and_none_get_the_same_bytes(
    service: None, owner: Person, request: pytest.FixtureRequest, name: str, asker: str
) -> None:
    key = request.getfixturevalue(asker).key
    foreign = tasks_of(owner)
    before, of_none = stored(), answers(name, key, nothing())
    for ids in foreign:
        for one, other in zip(answers(name, key, ids), of_none, strict=True):
            assert one == other
    assert stored() == before
    not_found = [answer for answer in of_none if "Task not found" in answer or answer.startswith("(204")]
    assert not_found == of_none
    assert len(of_none) >= (7 if has_notifications(name) else 3)


@pytest.mark.parametrize("name", speakers_of(GetPushConfig))
def test_a_foreign_webhook_and_none_of_ones_own_task_get_the_same_bytes(
    service: None, owner: Person, stranger: Person, name: str
) -> None:
    ((_, foreign), _), ((own, mine), _) = tasks_of(owner), tasks_of(stranger)

    def about(webhook: str) -> list[str]:
        me, calls = asking(name, stranger.key, (own, webhook))
        named = [call for call in calls if webhook in json.dumps(call.wire)]
        assert len(named) == 2, "one reads it and one removes it"
        return [plain(post(me, call.wire, **{"X-Request-ID": "r"}), (own, webhook)) for call in named]

    before = stored()
    assert about(foreign) == about(uuid7())
    assert stored() == before
    assert about(mine) != about(foreign)


@pytest.mark.parametrize("name", SOCKETS)
async def test_on_a_socket_too_they_get_the_same_frames(
    service: None, owner: Person, colleague: Person, stranger: Person, name: str
) -> None:
    foreign = await in_a_thread(lambda: tasks_of(owner))

    async def frames(key: str, ids: Ids) -> list[str]:
        me, calls = asking(name, key, ids)
        found = []
        async with serving() as server, dialled(url(server), **bearer(key)) as client:
            for call in calls:
                wire: Json = call.wire | parameters(me.version)
                await client.send(json.dumps(wire))
                found.append(plain(await client.recv(), ids))
        return found

    for key in (colleague.key, stranger.key):
        of_none = await frames(key, nothing())
        assert all("Task not found" in frame for frame in of_none)
        assert [await frames(key, ids) for ids in foreign] == [of_none] * len(foreign)


@pytest.mark.parametrize("asker", ["colleague", "stranger"])
@pytest.mark.parametrize("wish", ["invoke", "invoke/stream"])
def test_the_id_of_a_foreign_call_is_as_good_as_a_new_one(
    service: None, owner: Person, request: pytest.FixtureRequest, wish: str, asker: str
) -> None:
    """In ADR-002 the id of a call leads to its task, and Last-Event-ID into the middle of its output."""

    def asked(person: Person, text: str, id: str, **headers: str) -> str:
        me = speaker("ADR-002", person.key)
        wire = me.call(wish, me.sending(text, agent="quick-coroutine"))
        answer = str(post(me, wire | {"id": 1}, **{"X-Request-ID": id, **headers}))
        return UUIDS.sub("U", answer.replace(id, "R" * len(id)))

    person = request.getfixturevalue(asker)
    asked(owner, "of the owner", "used-id")
    for headers in ({}, {"Last-Event-ID": "1"}):
        calls = [asked(person, "hello", id, **headers) for id in ("used-id", "else-id")]
        assert calls[0] == calls[1]
        assert "hello" in calls[0]
        assert "200" in calls[0]
    assert "409" in asked(owner, "hello", "used-id")


@pytest.mark.parametrize("place", ["/links", "/agents/quick-coroutine/links"])
def test_a_link_to_a_foreign_task_and_to_none_get_the_same_bytes(
    service: None, owner: Person, colleague: Person, stranger: Person, place: str
) -> None:
    def asked(person: Person, ids: Ids) -> str:
        me = speaker("1.0", person.key)
        me.path = place
        return plain(post(me, {"taskId": ids[0]}, **{"X-Request-ID": "r"}), ids)

    (ids, _) = tasks_of(owner)
    for person in (colleague, stranger):
        assert asked(person, ids) == asked(person, nothing())
    assert "signature" in asked(owner, ids)


@pytest.mark.parametrize("name", speakers_of(ListTasks))
def test_the_list_of_a_foreign_context_is_as_empty_as_that_of_none(
    service: None, owner: Person, stranger: Person, name: str
) -> None:
    context = sent(owner, agent="quick-coroutine").context_id

    def listing(person: Person, context: str) -> str:
        me = speaker(name, person.key)
        wire = me.call("list", me.listing(context=context))
        return plain(post(me, wire, **{"X-Request-ID": "r"}), (context, context))

    assert listing(stranger, context) == listing(stranger, uuid7())
    assert listing(owner, context) != listing(owner, uuid7())
