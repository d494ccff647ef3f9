"""An entry of the audit for each call of each language, at each door, that changes something; none for others."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from a2a.memory import StoreMemory
from a2a.requests import StartSharedStream
from a2a.workflows import Phase, SetPhase
from tasks_app.exchanges.recording import recorder
from tasks_app.models import AuditEntry
from tasks_app.zones.in_process import answer
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask, sent
from tests.operations.webhooks import hook
from tests.support.every_method import SOCKETS, SPEAKERS, Sample, post, samples, speaker
from tests.transports.websocket.door import bearer, dialled, next_frame, parameters
from tests.transports.websocket.serving import in_a_thread, serving, url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
URL = "http://127.0.0.1:65009/hook"


@pytest.fixture(autouse=True)
def _room(settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True
    settings.A2A_OWNER_WEBHOOKS = 10_000


def calls(owner: Person, name: str) -> list[Sample]:
    """Return a call of each operation of the language, about tasks and other things that the owner has."""
    me, task = speaker(name, owner.key), sent(owner, agent="quick-coroutine").id
    webhook, removes = (hook(owner, task, URL).id or "" for _ in range(2))
    ends = {"cancels": sent(owner, agent="asks-quickly").id, "removes": removes}
    if "begin" in me.names:
        ends |= {name: ask(owner, StartSharedStream()).id for name in ("stream", "closes")}
    if "workflow" in me.names:
        ask(owner, SetPhase(workflow="w", phase=Phase.SPECIFICATION))
    if "store" in me.names:
        for key in ("present", "ends"):
            ask(owner, StoreMemory(namespace="sparc", key=key, data="hello"))
    assert not entries(), "only calls have entries"
    return list(samples(me, SPEAKERS[name][2], task, webhook, URL, agent="quick-coroutine", **ends))


def entries() -> list[AuditEntry]:
    assert recorder.drain(PATIENCE)
    return list(AuditEntry.objects.order_by("id"))


def check(sample: Sample, before: list[AuditEntry], language: str, *doors: str) -> None:
    """Check the entries since a call that was performed."""
    new = entries()[len(before) :]
    assert len(new) == sample.request.changes, f"{sample.wire['method']}: {list(map(str, new))}"
    for entry in new:
        # Without parts, a body does not tell the two forms of 0.3 over REST apart.
        assert entry.language.startswith(language.removesuffix("-kind")), sample.wire["method"]
        assert (entry.outcome, entry.door in doors) == ("result", True), sample.wire["method"]


@pytest.mark.parametrize("name", SPEAKERS)
def test_a_call_over_http_has_an_entry_if_it_changes_something(owner: Person, name: str) -> None:
    me = speaker(name, owner.key)
    for sample in calls(owner, name):
        before = entries()
        status, _, body = post(me, sample.wire)
        assert status == 200 or b"the task has ended" in body, (sample.wire["method"], body)
        check(sample, before, SPEAKERS[name][2], "http", "rest")


@pytest.mark.parametrize("name", SOCKETS)
async def test_a_call_on_a_socket_has_an_entry_if_it_changes_something(owner: Person, name: str) -> None:
    me, found = speaker(name, owner.key), await in_a_thread(lambda: calls(owner, name))
    async with serving() as server, dialled(url(server), **bearer(owner.key)) as client:
        for sample in found:
            before = await in_a_thread(entries)
            await client.send(json.dumps(sample.wire | parameters(me.version)))
            answer = await next_frame(client)
            while sample.request.streaming and "error" not in answer and answer.get("method") != "stream/end":
                answer = await next_frame(client)
            await in_a_thread(lambda: check(sample, before, SPEAKERS[name][2], "websocket"))  # noqa: B023


def test_a_call_by_a_queue_has_an_entry_if_it_changes_something(owner: Person) -> None:
    for sample in calls(owner, "zones"):
        before = entries()
        asyncio.run(answer(json.dumps(sample.wire).encode(), owner.key, "queue"))
        check(sample, before, "zone", "queue")


DOORS: dict[str, Callable[[str], Any]] = {"/links": lambda task: {"taskId": task}, "/ws/ticket": lambda _: {}}
"""The bodies of calls that are in no language, by their paths."""


@pytest.mark.parametrize("path", DOORS)
def test_a_permission_that_a_call_makes_has_an_entry(owner: Person, path: str) -> None:
    me, task = speaker("1.0", owner.key), sent(owner, agent="quick-coroutine").id
    me.path = path
    status, _, _ = post(me, DOORS[path](task))
    assert (status, [entry.outcome for entry in entries()]) == (200, ["result"])
