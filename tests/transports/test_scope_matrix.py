"""Each method with each scope, at each door and in each language: allowed where its right says so, and nowhere else."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from a2a.errors import MissingScope
from a2a.language import Language
from a2a.languages import ALL
from a2a.memory import StoreMemory
from a2a.requests import CancelTask, DeletePushConfig, FollowSharedStream, Negotiate, Request, StartSharedStream
from a2a.states import UNFINISHED
from a2a.workflows import Phase, SetPhase
from tasks_app.batches.rows import BATCH_AGENT
from tasks_app.callers.scopes import ACP, IDENTIFY, OWN, spell
from tasks_app.exchanges.recording import recorder
from tasks_app.models import (
    Chunk,
    Event,
    Exchange,
    IdempotencyKey,
    MemoryEntry,
    SharedStream,
    Task,
    Webhook,
    Workflow,
)
from tasks_app.operations import OPERATIONS
from tests.conftest import PATIENCE, Person, person, until
from tests.operations.asking import ask, sent
from tests.operations.webhooks import hook
from tests.support.every_method import ENVELOPED, SOCKETS, SPEAKERS, Sample, last_json, post, samples, speaker
from tests.support.speaker import Json, Speaker
from tests.transports.websocket.door import PARAMETERS, bearer, dialled, next_frame, parameters
from tests.transports.websocket.serving import in_a_thread, serving, url

pytestmark = pytest.mark.django_db(transaction=True)
SINGLE = ["", "*", "weather", *OWN, *ACP]
PAIRS = [f"{IDENTIFY.acp} {scope}" for scope in ACP if scope != IDENTIFY.acp]
CREDENTIALS = [*SINGLE, *PAIRS]
"""The scopes of credentials: none, all, a scope of an agent, each single one in both spellings, and each one of ACP
with the one that every call in ACP needs."""
DECIDING = ["", "*", *OWN]
"""The scopes that other languages are tried with at each door. Their single calls are tried with all of `SINGLE`."""
URL = "http://127.0.0.1:65009/hook"
ENDED = -32004
"""The code of 1.0 for a subscription to a task that has ended, which is an answer to a caller with the right."""
AS_STREAM: dict[type[Request], tuple[type[Request], ...]] = {StartSharedStream: (FollowSharedStream, StartSharedStream)}
"""Operations that a call on a socket performs besides its own: there the start of a shared stream follows it too."""


def allows(scopes: str, kind: type[Request], language: Language) -> bool:
    has = set(scopes.split())
    may = not OPERATIONS[kind].right.granted_by.isdisjoint(has)
    return may and (language.spelling != "acp" or not IDENTIFY.granted_by.isdisjoint(has))


def refusal(kind: type[Request], scopes: str, language: Language) -> MissingScope:
    right, has, spelling = OPERATIONS[kind].right, frozenset(scopes.split()), language.spelling
    required = right.spelled(spelling) if right.granted_by.isdisjoint(has) else IDENTIFY.acp
    return MissingScope(required=required, provided=" ".join(sorted(spell(has, spelling))))


def code_of(name: str, wire: Json) -> int:
    """Return the code of a missing scope in the language of the call."""
    return language_of(name, wire).column[MissingScope].number


def language_of(name: str, wire: Json) -> Language:
    return ALL.by_name["openrpc" if wire["method"] == "rpc.discover" else SPEAKERS[name][2]]


def without_time(error: Json) -> Json:
    """Return an error without the time at which it was made and the id of its call, which some languages show."""
    if not isinstance(data := error.get("data"), dict):
        return error
    return error | {"data": {name: value for name, value in data.items() if name not in {"timestamp", "requestId"}}}


def stored() -> list[Any]:
    """Return what calls change, once no agent is at work: some languages queue every task."""
    unfinished = Task.objects.filter(state__in=UNFINISHED).exclude(agent=BATCH_AGENT)
    until(lambda: not unfinished.exists(), "an agent is at work")
    counts = [model.objects.count() for model in (Event, IdempotencyKey)]
    counts += [model.objects.count() for model in (SharedStream, Chunk)]
    counts += MemoryEntry.objects.order_by("id").values_list("key", "version")
    counts += Workflow.objects.order_by("id").values_list("name", "updated_at")
    return [*counts, *Webhook.objects.order_by("id").values_list("name", "state")]


def body_of(error: MissingScope, sample: Sample, language: Language) -> Json:
    """Return the body of a refusal over HTTP without a common envelope."""
    if language.rest:
        return language.rest.encode_error(error, 403, "PERMISSION_DENIED")
    rpc_id = None if sample.request is Negotiate else sample.wire["id"]
    return {"jsonrpc": "2.0", "id": rpc_id, "error": language.error(error)}


class Ground:
    """A caller with a key of each single scope, and tasks to ask about."""

    def __init__(self) -> None:
        self.keys = {scope: person("owner", "home", scopes=scope) for scope in CREDENTIALS}
        self.owner = self.keys["*"]
        self.task = sent(self.owner, agent="quick-coroutine").id
        self.webhook = hook(self.owner, self.task, URL).id or ""
        self.ends: dict[str, str] = {}

    def callers(self, name: str, others: Sequence[str] = DECIDING) -> Iterator[tuple[str, Person]]:
        """Yield each credential for calls in ACP, and these for calls in other languages, with its caller."""
        acp = ALL.by_name[SPEAKERS[name][2]].spelling == "acp"
        return ((scope, caller) for scope, caller in self.keys.items() if acp or scope in others)

    def samples(self, me: Speaker, name: str, scope: str) -> list[Sample]:
        """Return a call of each operation. What ends by a call is made anew once it may have ended."""
        ends = self.ends or {
            "cancels": sent(self.owner, agent="asks-quickly").id,
            "removes": hook(self.owner, self.task, URL).id or "",
        }
        language = ALL.by_name[SPEAKERS[name][2]]
        if "begin" in me.names:
            ends |= {name: ask(self.owner, StartSharedStream()).id for name in ("stream", "closes")}
        if "workflow" in me.names:
            Workflow.objects.all().delete()  # One that is being executed is not executed again.
            ask(self.owner, SetPhase(workflow="w", phase=Phase.SPECIFICATION))
        if "store" in me.names:
            for key in ("present", "ends"):
                ask(self.owner, StoreMemory(namespace="sparc", key=key, data="hello"))
        self.ends = {} if any(allows(scope, kind, language) for kind in (CancelTask, DeletePushConfig)) else ends
        return list(samples(me, SPEAKERS[name][2], self.task, self.webhook, URL, agent="quick-coroutine", **ends))


@pytest.fixture(autouse=True)
def many(settings: Any) -> None:
    settings.A2A_OWNER_WEBHOOKS, settings.A2A_OUTBOUND_LOOPBACK = 10_000, True
    settings.A2A_OWNER_BATCHES = 0


@pytest.fixture
def ground(service: None) -> Iterator[Ground]:
    """Yield the ground. No exchange of an earlier test or of this one comes late."""
    assert recorder.drain(PATIENCE)
    yield Ground()
    assert recorder.drain(PATIENCE)


def check(
    name: str,
    sample: Sample,
    scope: str,
    answer: Json,
    before: list[Any],
    status: int | None = None,
    kinds: tuple[type[Request], ...] = (),
) -> None:
    """Check the answer to one call in an envelope. Its operations are those of `kinds`, or else that of the sample."""
    what, error = f"{sample.wire['method']} with {scope!r}: {answer}", answer.get("error")
    language = language_of(name, sample.wire)
    forbidden = next((kind for kind in kinds or (sample.request,) if not allows(scope, kind, language)), None)
    if forbidden is None:
        assert error is None or error["code"] == ENDED, what
        return
    expected = json.loads(json.dumps(language.error(refusal(forbidden, scope, language))))
    assert error["code"] == code_of(name, sample.wire)
    assert without_time(error) == without_time(expected), what
    assert status in {None, 403}, what
    assert stored() == before, what


@pytest.mark.parametrize("name", ENVELOPED)
@pytest.mark.requirement("ZONE-14")
def test_a_single_call_needs_its_scope_alone(ground: Ground, name: str) -> None:
    for scope, caller in ground.callers(name, SINGLE):
        me = speaker(name, caller.key)
        for sample in ground.samples(me, name, scope):
            before = stored()
            status, _, body = post(me, sample.wire)
            check(name, sample, scope, last_json(body), before, status)


@pytest.mark.parametrize("name", ENVELOPED)
def test_each_member_of_a_batch_needs_its_scope_alone(ground: Ground, name: str) -> None:
    for scope, caller in ground.callers(name):
        me = speaker(name, caller.key)
        calls = [sample for sample in ground.samples(me, name, scope) if not sample.request.streaming]
        may = [allows(scope, each.request, language_of(name, each.wire)) for each in calls]
        for batch in ([each for each, does in zip(calls, may, strict=True) if does is want] for want in (True, False)):
            before = stored()
            status, _, body = post(me, [sample.wire for sample in batch]) if batch else (200, {}, b"[]")
            assert status == 200
            for sample, answer in zip(batch, json.loads(body), strict=True):
                check(name, sample, scope, answer, before)


@pytest.mark.parametrize(
    "name", [*(name for name in ENVELOPED if not ALL.by_name[SPEAKERS[name][2]].needs_id), "ADR-002"]
)
def test_a_notification_needs_its_scope_alone(ground: Ground, name: str) -> None:
    for scope, caller in ground.callers(name):
        me = speaker(name, caller.key)
        for sample in (each for each in ground.samples(me, name, scope) if each.request is not Negotiate):
            before, seen = stored(), set(Exchange.objects.values_list("pk", flat=True))
            silent = {member: value for member, value in sample.wire.items() if member != "id"}
            status, _, body = post(me, silent)
            assert (status, body) == (204, b"")
            assert recorder.drain(PATIENCE)
            (row,) = Exchange.objects.exclude(pk__in=seen)
            assert (row.method, row.outcome) == (sample.wire["method"], "notified")
            may = allows(scope, sample.request, language_of(name, sample.wire))
            assert (row.code != code_of(name, sample.wire)) is may, f"{row.method} with {scope!r}"
            assert (stored() != before) is (may and sample.request.changes), f"{row.method} with {scope!r}"


@pytest.mark.parametrize("name", [name for name in SPEAKERS if name not in ENVELOPED])
def test_a_call_over_rest_needs_its_scope_alone(ground: Ground, name: str) -> None:
    for scope, caller in ground.callers(name):
        me = speaker(name, caller.key)
        for sample in ground.samples(me, name, scope):
            before = stored()
            status, _, body = post(me, sample.wire)
            what = f"{sample.wire['method']} with {scope!r}: {body!r}"
            language = language_of(name, sample.wire)
            if allows(scope, sample.request, language):
                assert status == 200 or b"the task has ended" in body, what
                continue
            wire = body_of(refusal(sample.request, scope, language), sample, language)
            assert (status, json.loads(body)) == (403, json.loads(json.dumps(wire))), what
            assert stored() == before, what


@pytest.mark.parametrize("name", SOCKETS)
async def test_a_call_on_a_socket_needs_its_scope_alone(service: None, name: str) -> None:
    ground = await in_a_thread(Ground)
    async with serving() as server:
        for scope, caller in ground.callers(name):
            me = speaker(name, caller.key)
            calls = await in_a_thread(lambda me=me, scope=scope: ground.samples(me, name, scope))
            async with dialled(url(server), **bearer(caller.key)) as client:
                for sample in calls:
                    before = await in_a_thread(stored)
                    await client.send(json.dumps(sample.wire | parameters(me.version)))
                    answer = await next_frame(client)
                    may = allows(scope, sample.request, language_of(name, sample.wire))
                    may_stream = sample.request.streaming and may
                    while may_stream and "error" not in answer and answer.get("method") != "stream/end":
                        answer = await next_frame(client)
                    answer.pop(PARAMETERS, None)
                    kinds = AS_STREAM.get(sample.request, ())
                    await in_a_thread(lambda: check(name, sample, scope, answer, before, kinds=kinds))  # noqa: B023


def names(kinds: Iterable[type[Request]]) -> set[str]:
    return {kind.__name__ for kind in kinds}


def test_each_scope_opens_what_it_should(owner: Person) -> None:
    opened = {
        scope: names(kind for kind in OPERATIONS if allows(scope, kind, ALL.by_name["a2a-1.0"])) for scope in SINGLE
    }
    reading = {
        "Negotiate",
        "GetTask",
        "ListTasks",
        "SubscribeToTask",
        "GetExtendedCard",
        "Describe",
        "GetCapabilities",
        "GetWorkflow",
    }
    writing = {"SendMessage", "StreamMessage", "Invoke", "StreamInvoke", "Execute"}
    writing |= {"SendInPhase", "StreamInPhase", "SetPhase", "ExecuteWorkflow"}
    looking = {"FollowTask", "GetPushConfig", "ListPushConfigs", "NotifyOfTask"}
    hooking = {"CreatePushConfig", "DeletePushConfig"}
    taking_part = {"StartSharedStream", "SendToSharedStream", "SendChunk", "EndSharedStream", "FollowSharedStream"}
    recalling, remembering = {"RetrieveMemory", "ListMemory", "SearchMemory"}, {"StoreMemory", "DeleteMemory"}
    assert opened == {
        "": set(),
        "*": names(OPERATIONS),
        "weather": set(),
        "tasks:read": reading | looking | recalling | {"FollowSharedStream"},
        "tasks:write": writing | {"ExecuteBatch"} | hooking | remembering | taking_part,
        "tasks:cancel": {"CancelTask"},
        "acp:agent:identify": set(),
        "acp:tasks:read": reading | recalling,
        "acp:tasks:write": writing | {"ExecuteBatch"} | remembering,
        "acp:tasks:cancel": {"CancelTask"},
        "acp:streams:read": {"FollowSharedStream"},
        "acp:streams:write": taking_part,
        "acp:notifications:receive": looking | hooking,
    }
