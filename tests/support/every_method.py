"""Each method of each language, as bytes for a door: generated from the table of operations."""

import asyncio
import json
from collections.abc import Iterator
from functools import cache
from threading import Thread
from typing import Any, NamedTuple
from uuid import uuid4

from a2a.batches import ExecuteBatch
from a2a.languages import ALL
from a2a.memory import DeleteMemory, ListMemory, RetrieveMemory, SearchMemory, StoreMemory
from a2a.requests import (
    CancelTask,
    CreatePushConfig,
    DeletePushConfig,
    Describe,
    EndSharedStream,
    Execute,
    FollowSharedStream,
    FollowTask,
    GetExtendedCard,
    GetPushConfig,
    GetTask,
    Invoke,
    ListPushConfigs,
    ListTasks,
    Negotiate,
    NotifyOfTask,
    Request,
    SendChunk,
    SendMessage,
    SendToSharedStream,
    StartSharedStream,
    StreamInvoke,
    StreamMessage,
    SubscribeToTask,
)
from a2a.workflows import ExecuteWorkflow, GetCapabilities, GetWorkflow, SendInPhase, SetPhase, StreamInPhase
from tasks_app.operations import OPERATIONS
from tests.conftest import PATIENCE
from tests.support.acp_speaker import AcpSpeaker
from tests.support.adr_speaker import AdrSpeaker
from tests.support.doors import StockDoor
from tests.support.rest_speakers import KindRestSpeaker, OldRestSpeaker, RestSpeaker
from tests.support.rpc_speakers import NewSpeaker, OldSpeaker
from tests.support.sparc_speaker import SparcSpeaker
from tests.support.speaker import Json, Speaker
from tests.support.vapora_speaker import VaporaSpeaker
from tests.support.zone_speaker import ZoneSpeaker

WISHES: dict[type[Request], str] = {
    SendMessage: "send",
    StreamMessage: "stream",
    Invoke: "invoke",
    StreamInvoke: "invoke/stream",
    Execute: "execute",
    Negotiate: "negotiate",
    GetTask: "get",
    ListTasks: "list",
    CancelTask: "cancel",
    SubscribeToTask: "subscribe",
    FollowTask: "follow",
    CreatePushConfig: "push",
    GetPushConfig: "pushed",
    ListPushConfigs: "pushes",
    DeletePushConfig: "unpush",
    StartSharedStream: "begin",
    FollowSharedStream: "listen",
    SendToSharedStream: "say",
    SendChunk: "chunk",
    EndSharedStream: "end",
    SendInPhase: "send",
    StreamInPhase: "stream",
    SetPhase: "phase",
    ExecuteWorkflow: "execute",
    GetWorkflow: "workflow",
    GetCapabilities: "capabilities",
    NotifyOfTask: "notify",
    ExecuteBatch: "batch",
    StoreMemory: "store",
    RetrieveMemory: "retrieve",
    ListMemory: "keys",
    DeleteMemory: "forget",
    SearchMemory: "search",
    GetExtendedCard: "card",
    Describe: "rpc.discover",
}
"""The words of speakers for operations. A new operation needs one here."""
assert WISHES.keys() == OPERATIONS.keys()

SPEAKERS: dict[str, tuple[type[Speaker], str | None, str]] = {
    "1.0": (NewSpeaker, "1.0", "a2a-1.0"),
    "0.3": (OldSpeaker, "0.3", "a2a-0.3"),
    "0.2": (OldSpeaker, "0.2", "a2a-0.2"),
    "ACP": (AcpSpeaker, None, "acp"),
    "1.0 over REST": (RestSpeaker, "1.0", "a2a-1.0"),
    "0.3 over REST, as protobuf": (OldRestSpeaker, "0.3", "a2a-0.3-proto"),
    "0.3 over REST, with kind": (KindRestSpeaker, "0.3", "a2a-0.3-kind"),
    "SPARC": (SparcSpeaker, None, "sparc"),
    "VAPORA": (VaporaSpeaker, None, "vapora"),
    "ADR-002": (AdrSpeaker, None, "adr"),
    "zones": (ZoneSpeaker, None, "zone"),
}
"""The speakers, each with its version and the name of its language. A new language needs one here."""
assert {name for _, _, name in SPEAKERS.values()} == ALL.by_name.keys() - {"openrpc"}
WITH_TASKS = [name for name in SPEAKERS if name != "ADR-002"]
"""The speakers whose calls name tasks. Those of ADR-002 name agents."""
ENVELOPED = [name for name, (kind, _, _) in SPEAKERS.items() if kind.has_envelope]
SOCKETS = [name for name in ENVELOPED if SPEAKERS[name][0].endpoint == "rpc"]
"""The speakers whose calls a WebSocket connection carries."""


def kinds_of(language: str) -> set[type[Request]]:
    """Return the operations that a language has methods for, at any of its endpoints."""
    languages = [each for endpoint in ALL.endpoints.values() for each in endpoint.languages if each.name == language]
    return {method.request for each in languages for method in each.methods.values()}


def speakers_of(kind: type[Request]) -> list[str]:
    """Return the speakers whose language has a method for the operation."""
    return [name for name, (_, _, language) in SPEAKERS.items() if kind in kinds_of(language)]


MEMORY: dict[type[Request], Json] = {
    StoreMemory: {"namespace": "sparc", "key": "new", "data": {"phase": "specification"}},
    RetrieveMemory: {"namespace": "sparc", "key": "present"},
    ListMemory: {"namespace": "sparc"},
    DeleteMemory: {"namespace": "sparc", "key": "ends"},
    SearchMemory: {"namespace": "sparc", "text": "hello"},
}
"""The params of calls about the memory, whose owner has the entries `present` and `ends`."""
SPARC = {*MEMORY, ExecuteBatch, SetPhase, ExecuteWorkflow, GetWorkflow}
"""The operations that only SPARC has methods for."""


class Sample(NamedTuple):
    """A call of one operation."""

    request: type[Request]
    wire: Json
    """The call in the envelope of JSON-RPC; speakers of REST turn it into a verb, a path and a body."""


def speaker(name: str, key: str) -> Speaker:
    kind, version, _ = SPEAKERS[name]
    return kind(door=StockDoor(), key=key, version=version)


def samples(me: Speaker, language: str, task: str, webhook: str, url: str, **more: Any) -> Iterator[Sample]:
    """Yield a call of each operation that the language has, about this task and this webhook of it.

    Messages are new ones for `agent`, unless `follows` is true: then they are for the task. `cancels` and `removes` are
    the task and the webhook that end by their calls. `stream` is a shared stream, and `closes` one that ends.
    """
    kinds = kinds_of(language) | ({Describe} if me.has_envelope else set())
    for kind in (kind for kind in OPERATIONS if kind in kinds):
        yield Sample(kind, me.call(WISHES[kind], _params(me, kind, task, webhook, url, **more)))


def _params(
    me: Speaker,
    kind: type[Request],
    task: str,
    webhook: str,
    url: str,
    *,
    agent: str | None = None,
    follows: bool = False,
    cancels: str | None = None,
    removes: str | None = None,
    stream: str | None = None,
    closes: str | None = None,
) -> Json:
    if issubclass(kind, SendToSharedStream):
        content = (
            {"chunk": me.message("hello"), "sequence": 1} if kind is SendChunk else {"message": me.message("hello")}
        )
        return {"streamId": stream, **content}
    if kind is EndSharedStream:
        return {"streamId": closes}
    if kind is Negotiate and isinstance(me, AdrSpeaker):
        return me.negotiating(agent)
    if issubclass(kind, SendMessage | Invoke):
        return me.sending("hello", now=True, **({"task": task} if follows else {"agent": agent}))
    if kind in SPARC:
        return _params_of_sparc(me, kind, agent)
    if kind is NotifyOfTask:
        return {"taskId": task, "event": "COMPLETED", "timestamp": "2024-01-15T10:45:00Z"}
    if kind is CancelTask:
        return {"id": cancels or task}
    if kind in {GetTask, SubscribeToTask}:
        return {"id": task}
    if kind is CreatePushConfig:
        return me.webhook_of(task, url, id=f"of {uuid4()}")
    ids = {ListPushConfigs: [task], GetPushConfig: [task, webhook], DeletePushConfig: [task, removes or webhook]}
    return me.webhook_id(*ids[kind]) if kind in ids else {}


def _params_of_sparc(me: Speaker, kind: type[Request], agent: str | None) -> Json:
    """Return the params of the methods that SPARC adds to A2A."""
    if kind is ExecuteBatch:
        return {"operation": agent or "echo", "tasks": [{"message": me.message("hello")}]}
    if kind in MEMORY:
        return MEMORY[kind]
    work = {"workflowId": "w", "phase": "specification"}
    return work | ({"message": me.message("hello")} if kind is ExecuteWorkflow else {})


def post(me: Speaker, wire: Any, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return the status, the headers and the body of the answer to a call, a batch or a notification."""

    async def ask() -> tuple[int, dict[str, str], bytes]:
        verb, path, body = me.request_of(wire)
        async with me.door.ask(verb, path, body, me.headers(**headers)) as reply:
            return reply.status, reply.headers, b"".join([chunk async for chunk in reply.chunks])

    return asyncio.run_coroutine_threadsafe(ask(), _loop()).result(PATIENCE)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the loop of all calls, which outlives each of them: what a call leaves behind is done after its answer."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, daemon=True).start()
    return loop


def last_json(body: bytes) -> Any:
    """Return the JSON of an answer, or of the last event of a stream."""
    if body.startswith((b"{", b"[")):
        return json.loads(body)
    return json.loads([line for line in body.split(b"\n") if line.startswith(b"data:")][-1][5:])
