"""Our client as a speaker of the story: what chapters say in 1.0 it asks in its own language, and answers in 1.0."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import httpx
import orjson
from msgspec.structs import replace

from a2a.client import ADR, SPARC, VAPORA, ZONE, Client, ServerError, Timeouts, Update
from a2a.client.answers import ConfigPage, TaskPage
from a2a.dialects.cards_1_0 import encode_card
from a2a.dialects.json.json_1_0 import encode_artifact, encode_message, encode_status, encode_task
from a2a.dialects.v1_0 import DIALECT
from a2a.dialects.webhooks import encode_flat
from a2a.events import ArtifactAdded, StatusChanged
from a2a.requests import Execute, Request, SendMessage, StreamMessage, SubscribeToTask
from a2a.types import Card, Interface, Message, PushConfig, Task
from tests.conftest import NO_TLS, PATIENCE
from tests.support.adr_speaker import AdrSpeaker
from tests.support.doors import LiveDoor
from tests.support.rpc_speakers import NewSpeaker, OldSpeaker
from tests.support.sparc_speaker import in_words_of_a2a
from tests.support.speaker import Frame, Json, Refused
from tests.support.vapora_speaker import CODES, VaporaSpeaker
from tests.support.zone_speaker import TOKEN, ZoneSpeaker


@dataclass(kw_only=True)
class ClientSpeaker(NewSpeaker):
    """A client of one binding and one version, found by the card of the server."""

    binding: str = "JSONRPC"
    language: str = "1.0"

    traits: ClassVar[frozenset[str]] = frozenset({"card"})
    has_envelope = False

    def __post_init__(self) -> None:
        if self.language != "1.0":
            self.subscription_ends = self.default_webhook = True
            self.completed_mark = OldSpeaker.completed_mark
            self.webhook_version = OldSpeaker.webhook_version
        if self.binding == VAPORA:
            self.absent_webhook = VaporaSpeaker.absent_webhook

    def is_card(self, card: Json) -> None:
        assert card["capabilities"]["extendedAgentCard"] is True

    def delivered(self, media: str, body: Json) -> str:
        if self.language == "1.0":
            return super().delivered(media, body)
        assert (media, body["kind"]) == ("application/json", "task")
        return str(body["id"])

    @property
    def tells_zero(self) -> bool:  # type: ignore[override]  # the JSON of the protobuf has no zero
        return self.language == "1.0" or (self.language == "0.3" and self.binding in {"JSONRPC", VAPORA})

    def ways(self) -> dict[str, Any]:
        """Return what leads the client to its binding and its version."""
        return {"versions": (self.language,), "bindings": (self.binding,)}

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        assert isinstance(self.door, LiveDoor)
        limits = Timeouts(request=PATIENCE, silence=PATIENCE)
        async with (
            httpx.AsyncClient(verify=NO_TLS) as http,
            Client(self.door.url, token=self.key, timeouts=limits, http=http, **self.ways()) as client,
        ):
            yield client

    def told(self, error: ServerError) -> Refused:
        """Return the error as a chapter reads it."""
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": error.reason}
        details = str(error.details).replace("message.content[", "message.parts[")
        return Refused({"code": error.code, "message": error.message, "data": [info | {"details": details}]})

    def request(self, wish: str, params: Any) -> Request:
        """Return the request that the params of 1.0 are."""
        return DIALECT.methods[self.names[wish]].decode(orjson.loads(orjson.dumps(params)))

    async def ask(self, wish: str, params: Any, **headers: str) -> Any:
        request = self.request(wish, params)
        if isinstance(request, StreamMessage | SubscribeToTask):
            frames = await self.follow(wish, params, **headers)
            return frames[-1].wire
        async with self.client() as client:
            try:
                result = await client.perform(request)
            except ServerError as error:
                raise self.told(error) from error
        return wrapped(result) if wish == "send" else encoded(result)

    @asynccontextmanager
    async def stream(self, wish: str, params: Any, **headers: str) -> AsyncIterator[AsyncIterator[Frame]]:
        request = self.request(wish, params)
        assert isinstance(request, StreamMessage | SubscribeToTask)
        after = headers.get("Last-Event-ID")
        if after is not None:
            request = replace(request, after=int(after))
        async with self.client() as client, client.follow(request) as updates:
            reading = aiter(updates)
            try:
                first = await anext(reading)
            except ServerError as error:
                raise self.told(error) from error
            yield frames_of(first, reading)


@dataclass(kw_only=True)
class VaporaClientSpeaker(ClientSpeaker):
    """A client of VAPORA at its path, which gives errors back with the codes of A2A."""

    def ways(self) -> dict[str, Any]:
        assert isinstance(self.door, LiveDoor)
        return {"interface": Interface(url=f"{self.door.url}/a2a", binding=VAPORA, version=self.language)}

    def told(self, error: ServerError) -> Refused:
        refused = super().told(error)
        return Refused(refused.error | {"code": CODES[error.reason]})


@dataclass(kw_only=True)
class SparcClientSpeaker(ClientSpeaker):
    """A client of SPARC at its path, which gives errors back in the words of A2A."""

    def ways(self) -> dict[str, Any]:
        assert isinstance(self.door, LiveDoor)
        return {"interface": Interface(url=f"{self.door.url}/sparc", binding=SPARC, version=self.language)}

    def told(self, error: ServerError) -> Refused:
        refused = super().told(error)
        words = in_words_of_a2a({"data": error.details})
        info = refused.error["data"][0] | {"details": str(words["data"])}
        return Refused(refused.error | {"message": words["message"], "data": [info]})


@dataclass(kw_only=True)
class ZoneClientSpeaker(ClientSpeaker):
    """A client of zones, which executes messages, and gives errors back with the codes of A2A."""

    untold: ClassVar[Mapping[str, str]] = ZoneSpeaker.untold
    lacks: ClassVar[frozenset[str]] = ZoneSpeaker.lacks
    reason_of_ended = ZoneSpeaker.reason_of_ended

    def ways(self) -> dict[str, Any]:
        assert isinstance(self.door, LiveDoor)
        return {"interface": Interface(url=f"{self.door.url}/jsonrpc", binding=ZONE, version=self.language)}

    def request(self, wish: str, params: Any) -> Request:
        request = super().request(wish, params)
        if not isinstance(request, SendMessage):
            return request
        return Execute(
            message=request.message,
            agent=(request.metadata or {}).get("agent"),
            return_immediately=request.return_immediately,
            metadata={"zone": {"channel": "C1"}},
            secrets={"bot_token": TOKEN},
        )

    def is_task(self, task: Json) -> None:
        assert task["id"]

    def told(self, error: ServerError) -> Refused:
        refused = super().told(error)
        return Refused(refused.error | {"code": CODES[error.reason]})


@dataclass(kw_only=True)
class AdrClientSpeaker(ClientSpeaker):
    """A client of ADR-002, whose calls name agents."""

    untold: ClassVar[Mapping[str, str]] = AdrSpeaker.untold
    lacks: ClassVar[frozenset[str]] = AdrSpeaker.lacks

    def ways(self) -> dict[str, Any]:
        assert isinstance(self.door, LiveDoor)
        return {"interface": Interface(url=self.door.url, binding=ADR, version=self.language)}


KINDS: dict[str, type[ClientSpeaker]] = {
    VAPORA: VaporaClientSpeaker,
    SPARC: SparcClientSpeaker,
    ZONE: ZoneClientSpeaker,
    ADR: AdrClientSpeaker,
}
"""The speakers of bindings that no card lists."""


async def frames_of(first: Update, rest: AsyncIterator[Update]) -> AsyncIterator[Frame]:
    yield frame_of(first)
    async for update in rest:
        yield frame_of(update)


def frame_of(update: Update) -> Frame:
    """Return an update as a chapter reads it."""
    seq = None if update.id is None else int(update.id)
    ids = {"taskId": update.task_id, "contextId": update.context_id}
    match update.event:
        case Task() as task:
            return Frame(seq, "task", encode_task(task), {"task": encode_task(task)})
        case Message() as message:
            return Frame(seq, "message", encode_message(message), {"message": encode_message(message)})
        case StatusChanged(status=status):
            value = ids | {"status": encode_status(status), "final": update.final}
            return Frame(seq, "status", value, {"statusUpdate": value})
        case ArtifactAdded(artifact=artifact, append=append, last_chunk=last):
            value = ids | {"artifact": encode_artifact(artifact), "append": append, "lastChunk": last}
            return Frame(seq, "artifact", value, {"artifactUpdate": value})


def wrapped(result: Task | Message) -> Json:
    return {"task": encode_task(result)} if isinstance(result, Task) else {"message": encode_message(result)}


def encoded(result: Any) -> Json:
    """Return a result in the JSON of 1.0."""
    match result:
        case Task():
            return encode_task(result)
        case TaskPage():
            return {
                "tasks": [encode_task(task) for task in result.tasks],
                "nextPageToken": result.next_page_token,
                "pageSize": len(result.tasks),
                "totalSize": result.total_size,
            }
        case PushConfig():
            return encode_flat(result)
        case ConfigPage():
            return {"configs": [encode_flat(config) for config in result.configs], "nextPageToken": ""}
        case Card():
            return encode_card(result)
        case _:
            return {}
