"""One story for every door and dialect: what a client can do, and what it is told when it may not.

A door carries bytes; a speaker says a wish in one language, checks what is special about the answer, and gives it back
in neutral words; a chapter knows neither.
"""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol
from uuid import uuid4

import httpx
from django.test import AsyncClient

from tests.conftest import NO_TLS

Json = dict[str, Any]
PATIENCE = 60


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    chunks: AsyncIterator[bytes]


Events = AsyncIterator[tuple[int | None, bytes]]
"""The events of a stream: sequence number and data."""


class Door(Protocol):
    """A way in."""

    def ask(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> AbstractAsyncContextManager[Reply]: ...

    def events(self, reply: Reply) -> Events | None:
        """Return the events of a reply; None if it is no stream."""


class HttpDoor:
    """A door whose streams are server-sent events."""

    def events(self, reply: Reply) -> Events | None:
        if reply.headers["content-type"] != "text/event-stream":
            return None
        assert reply.headers["x-accel-buffering"] == "no"
        return sent_events(reply.chunks)


async def sent_events(chunks: AsyncIterator[bytes]) -> Events:
    waiting = b""
    async for chunk in chunks:
        waiting += chunk
        *whole, waiting = waiting.split(b"\n\n")
        for event in whole:
            lines = dict(line.split(b": ", 1) for line in event.split(b"\n") if not line.startswith(b":"))
            yield (int(lines[b"id"]) if b"id" in lines else None), lines[b"data"]


class LiveDoor(HttpDoor):
    """A real server: uvicorn and the lean handler."""

    def __init__(self, url: str) -> None:
        self.url = url

    @asynccontextmanager
    async def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> AsyncIterator[Reply]:
        async with (
            httpx.AsyncClient(base_url=self.url, timeout=PATIENCE, verify=NO_TLS) as client,
            client.stream(method, path, content=body, headers=headers) as response,
        ):
            yield Reply(response.status_code, dict(response.headers), response.aiter_bytes())


class StockDoor(HttpDoor):
    """Django's own handler, in this process."""

    @asynccontextmanager
    async def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> AsyncIterator[Reply]:
        kind = headers.get("Content-Type", "application/octet-stream")
        rest = {name: value for name, value in headers.items() if name != "Content-Type"}
        client = AsyncClient()
        response = await client.generic(method, path, data=body, content_type=kind, headers=rest)
        told = {name.lower(): value for name, value in response.items()}
        if not response.streaming:
            yield Reply(response.status_code, told, once(response.content))
            return
        # Django's generator around ours does not close it: that would wait for the garbage collector.
        async with aclosing(response.streaming_content) as chunks, aclosing(response._iterator):
            yield Reply(response.status_code, told, chunks)


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


class Refused(Exception):  # a word of the story
    """The answer was an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['message']}: {error.get('data')}")
        self.error = error
        self.code: int = error["code"]


class Frame(NamedTuple):
    """An event of a stream in neutral words."""

    seq: int | None
    kind: str
    """task, status, artifact or message."""
    value: Any
    wire: Json
    """As a client of that dialect folds it."""


@dataclass(kw_only=True)
class Speaker:
    """A client of one dialect at one door."""

    door: Door
    key: str
    version: str | None = None
    path: str = "/jsonrpc"
    ids: list[Any] = field(default_factory=lambda: [0])

    # ------------------------------------------------------------ the dialect

    names: dict[str, str] = field(default_factory=dict)
    media = "application/json"
    error_is_list = False
    has_envelope = True
    tells_zero = True
    """A history length of 0 is not the same as none in what it sends."""
    traits: ClassVar[frozenset[str]] = frozenset()
    """The chapters that are not for everybody: batch, card, extensions, tenants, versions."""
    subscription_ends = False
    """A subscription is answered where a task has ended, and ends with a question."""
    always_has_reason = True
    """Errors have their reason also where there are no facts."""
    versions: ClassVar[frozenset[str]] = frozenset()
    """Values of A2A-Version with which its calls are understood."""
    extensions_headers = ("a2a-extensions", "x-a2a-extensions")
    """The header that tells extensions, and the one that does not."""
    extension_code = -32008
    """The number of a missing extension."""
    default_webhook = False
    """A webhook without an id is the task's default."""
    nothing: ClassVar[Any] = {}
    """The result of deleting."""
    webhook_path = ""
    """The path of a config in the params of its registration."""
    completed_mark = "TASK_STATE_COMPLETED"
    """In a delivery, the end of the work."""
    webhook_version = "1.0"
    """The A2A-Version of a delivery."""
    deliveries_are_answers = False
    """The body of a delivery is the task as an answer shows it."""

    @property
    def has_card(self) -> bool:
        """Cards for known callers are got by a call."""
        return True

    def is_card(self, card: Json) -> None:
        """Check what is special about a card."""

    def delivered(self, media: str, body: Json) -> str:
        """Return the id of the task of a delivery."""
        raise NotImplementedError

    def message(self, text: str, **more: Any) -> Json:
        raise NotImplementedError

    def configuration(self, *, now: bool, history: int | None) -> Json:
        raise NotImplementedError

    def attaching(self, content: bytes, media_type: str, name: str = "file") -> Json:
        """A message that is a file."""
        raise NotImplementedError

    def data(self, value: Json) -> Json:
        """A part."""
        raise NotImplementedError

    def link(self, url: str) -> Json:
        """A part."""
        raise NotImplementedError

    def state(self, status: Json) -> str:
        raise NotImplementedError

    def sent(self, result: Json) -> tuple[str, Json]:
        """task or message, and which."""
        raise NotImplementedError

    def frame(self, seq: int | None, result: Json) -> Frame:
        raise NotImplementedError

    def listing(self, **filters: Any) -> Json:
        raise NotImplementedError

    def page(self, result: Json) -> tuple[list[Json], str, int]:
        """Tasks, next token, total."""
        raise NotImplementedError

    webhook_name = ""
    """Of the config inside a send."""

    def webhook(self, url: str, **more: Any) -> Json:
        """A config inside a send."""
        raise NotImplementedError

    def webhook_of(self, task: str, url: str, **more: Any) -> Json:
        """The params of its registration."""
        raise NotImplementedError

    def webhook_id(self, task: str, id: str | None = None) -> Json:
        """The params of reading, listing and removing."""
        raise NotImplementedError

    def webhooks(self, result: Any) -> list[tuple[str, Json]]:
        """What a list, or one of it as a list, has: the task and the config."""
        raise NotImplementedError

    # ---------------------------------------------------------------- calling

    def call(self, wish: str, params: Any) -> Json:
        self.ids[0] += 1
        return {"jsonrpc": "2.0", "id": f"rpc-{self.ids[0]}", "method": self.names.get(wish, wish), "params": params}

    def asked(self, wire: Any) -> tuple[str, str, bytes]:
        """The verb, the path and the body of a call."""
        return "POST", self.path, json.dumps(wire).encode()

    def told(self, status: int, answer: Any, wire: Any) -> Any:
        """An answer in the shape of JSON-RPC, once its own shape was looked at."""
        return answer

    def heard(self, answer: Json, wire: Json) -> Json:
        """What an event of a stream holds."""
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", wire["id"])
        result: Json = answer["result"]
        return result

    def headers(self, **more: str) -> dict[str, str]:
        version = {"A2A-Version": self.version} if self.version else {}
        return {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **version, **more}

    async def post(self, wire: Any, **headers: str) -> tuple[int, Any]:
        """The status and the JSON of the answer, None if there is none."""
        verb, path, asked = self.asked(wire)
        async with (
            asyncio.timeout(PATIENCE),
            self.door.ask(verb, path, asked, self.headers(**headers)) as reply,
        ):
            body = b"".join([chunk async for chunk in reply.chunks])
            if body:
                assert reply.headers["content-type"] == self.media
            return reply.status, self.told(reply.status, json.loads(body), wire) if body else None

    async def ask(self, wish: str, params: Any, **headers: str) -> Any:
        """The result. Raises Refused."""
        wire = self.call(wish, params)
        status, answer = await self.post(wire, **headers)
        assert status == 200 or not self.has_envelope
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", wire["id"])
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def sending(
        self, text: str, *, agent: str | None = None, now: bool = False, history: int | None = None, **more: Any
    ) -> Json:
        metadata = {"metadata": {"agent": agent}} if agent else {}
        return {
            "message": self.message(text, **more),
            "configuration": self.configuration(now=now, history=history),
            **metadata,
        }

    async def send(self, text: str, **more: Any) -> Json:
        """The task."""
        kind, value = self.sent(await self.ask("send", self.sending(text, **more)))
        assert kind == "task"
        return value

    async def get(self, task_id: str, **more: Any) -> Json:
        task: Json = await self.ask("get", {"id": task_id, **more})
        self.is_task(task)
        return task

    def is_task(self, task: Json) -> None:
        """What every task of the dialect has."""
        assert task["id"]
        assert task["contextId"]
        assert task["status"]["timestamp"].endswith("Z")

    @asynccontextmanager
    async def stream(self, wish: str, params: Any, **headers: str) -> AsyncIterator[AsyncIterator[Frame]]:
        """Its frames as they come. Raises Refused if it does not open."""
        wire = self.call(wish, params)
        verb, path, asked = self.asked(wire)
        async with asyncio.timeout(PATIENCE), self.door.ask(verb, path, asked, self.headers(**headers)) as reply:
            assert reply.status == 200 or not self.has_envelope
            events = self.door.events(reply)
            if events is None:
                assert reply.headers["content-type"] == self.media
                answer = json.loads(b"".join([chunk async for chunk in reply.chunks]))
                raise Refused(self.told(reply.status, answer, wire)["error"])
            yield self.frames(events, wire)

    async def frames(self, events: Events, wire: Json) -> AsyncIterator[Frame]:
        async for seq, data in events:
            yield self.frame(seq, self.heard(json.loads(data), wire))

    async def follow(self, wish: str, params: Any, **headers: str) -> list[Frame]:
        """All frames of a stream that ends."""
        async with self.stream(wish, params, **headers) as frames:
            return [frame async for frame in frames]


@dataclass(kw_only=True)
class NewSpeaker(Speaker):
    """A2A 1.0."""

    names: dict[str, str] = field(
        default_factory=lambda: {
            "send": "SendMessage",
            "stream": "SendStreamingMessage",
            "get": "GetTask",
            "list": "ListTasks",
            "cancel": "CancelTask",
            "subscribe": "SubscribeToTask",
            "push": "CreateTaskPushNotificationConfig",
            "pushed": "GetTaskPushNotificationConfig",
            "pushes": "ListTaskPushNotificationConfigs",
            "unpush": "DeleteTaskPushNotificationConfig",
            "card": "GetExtendedAgentCard",
        }
    )
    error_is_list = True
    traits = frozenset({"batch", "card", "extensions", "tenants", "versions"})
    versions = frozenset({"1.0", "1.0.1", ""})

    def is_card(self, card: Json) -> None:
        assert card["capabilities"]["extendedAgentCard"] is True
        assert card["supportedInterfaces"][0]["url"].endswith("/jsonrpc")

    def delivered(self, media: str, body: Json) -> str:
        assert media == "application/a2a+json"
        ((kind, value),) = body.items()
        return str(value["id"] if kind == "task" else value["taskId"])

    def message(self, text: str, *, id: str | None = None, task: str | None = None, context: str | None = None) -> Json:
        found: Json = {"messageId": id or str(uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}
        return found | ({"taskId": task} if task else {}) | ({"contextId": context} if context else {})

    def configuration(self, *, now: bool, history: int | None) -> Json:
        return {"returnImmediately": now, "historyLength": history}

    def attaching(self, content: bytes, media_type: str, name: str = "file") -> Json:
        part = {"raw": b64encode(content).decode(), "mediaType": media_type, "filename": name}
        return self.message("") | {"parts": [part]}

    def data(self, value: Json) -> Json:
        return {"data": value}

    def link(self, url: str) -> Json:
        return {"url": url}

    def state(self, status: Json) -> str:
        assert status["state"].startswith("TASK_STATE_")
        return str(status["state"].removeprefix("TASK_STATE_").lower())

    def is_task(self, task: Json) -> None:
        super().is_task(task)
        assert "kind" not in task
        assert task.get("history") != []
        assert {said["role"] for said in task.get("history", ())} <= {"ROLE_USER", "ROLE_AGENT"}

    def sent(self, result: Json) -> tuple[str, Json]:
        ((kind, value),) = result.items()
        return kind, value

    def frame(self, seq: int | None, result: Json) -> Frame:
        ((kind, value),) = result.items()
        assert "final" not in value
        assert "kind" not in value
        return Frame(seq, {"statusUpdate": "status", "artifactUpdate": "artifact"}.get(kind, kind), value, result)

    def listing(self, **filters: Any) -> Json:
        names = {"context": "contextId", "size": "pageSize", "token": "pageToken", "artifacts": "includeArtifacts"}
        return {names[name]: value for name, value in filters.items()}

    def page(self, result: Json) -> tuple[list[Json], str, int]:
        assert set(result) == {"tasks", "nextPageToken", "pageSize", "totalSize"}
        assert result["pageSize"] == len(result["tasks"])
        return result["tasks"], result["nextPageToken"], result["totalSize"]

    webhook_name = "taskPushNotificationConfig"

    def webhook(self, url: str, *, scheme: str = "Bearer", credentials: str | None = None, **more: Any) -> Json:
        secret = {"authentication": {"scheme": scheme, "credentials": credentials}} if credentials else {}
        return {"url": url, **secret, **more}

    def webhook_of(self, task: str, url: str, **more: Any) -> Json:
        return {"taskId": task, **self.webhook(url, **more)}

    def webhook_id(self, task: str, id: str | None = None) -> Json:
        return {"taskId": task} | ({"id": id} if id else {})

    def webhooks(self, result: Any) -> list[tuple[str, Json]]:
        assert set(result) == {"configs", "nextPageToken"} or "url" in result
        found = result.get("configs", [result])
        return [(one["taskId"], {name: value for name, value in one.items() if name != "taskId"}) for one in found]


@dataclass(kw_only=True)
class OldSpeaker(Speaker):
    """A2A 0.3, and 0.2 by its header."""

    names: dict[str, str] = field(
        default_factory=lambda: {
            "send": "message/send",
            "stream": "message/stream",
            "get": "tasks/get",
            "list": "tasks/list",
            "cancel": "tasks/cancel",
            "subscribe": "tasks/resubscribe",
            "push": "tasks/pushNotificationConfig/set",
            "pushed": "tasks/pushNotificationConfig/get",
            "pushes": "tasks/pushNotificationConfig/list",
            "unpush": "tasks/pushNotificationConfig/delete",
            "card": "agent/getAuthenticatedExtendedCard",
        }
    )

    traits = frozenset({"batch", "card", "extensions", "versions"})
    subscription_ends = True
    always_has_reason = False
    versions = frozenset({"0.3", "0.3.0", "0.2", "0.2.9", ""})
    extensions_headers = ("x-a2a-extensions", "a2a-extensions")
    extension_code = -32600
    default_webhook = True
    nothing: ClassVar[Any] = None
    webhook_path = "pushNotificationConfig."
    completed_mark = '"completed"'
    webhook_version = "0.3"
    deliveries_are_answers = True

    @property
    def has_card(self) -> bool:
        return self.version != "0.2"  # There it is a page of its own: see tests/transports/cards/test_extended.py.

    def is_card(self, card: Json) -> None:
        assert (card["protocolVersion"], card["supportsAuthenticatedExtendedCard"]) == ("0.3.0", True)

    def delivered(self, media: str, body: Json) -> str:
        assert (media, body["kind"]) == ("application/json", "task")
        return str(body["id"])

    def message(self, text: str, *, id: str | None = None, task: str | None = None, context: str | None = None) -> Json:
        found: Json = {"kind": "message", "messageId": id or str(uuid4()), "role": "user"}
        found["parts"] = [{"kind": "text", "text": text}]
        return found | ({"taskId": task} if task else {}) | ({"contextId": context} if context else {})

    def configuration(self, *, now: bool, history: int | None) -> Json:
        return {"blocking": not now, "historyLength": history}

    def attaching(self, content: bytes, media_type: str, name: str = "file") -> Json:
        file = {"bytes": b64encode(content).decode(), "mimeType": media_type, "name": name}
        return self.message("") | {"parts": [{"kind": "file", "file": file}]}

    def data(self, value: Json) -> Json:
        return {"kind": "data", "data": value}

    def link(self, url: str) -> Json:
        return {"kind": "file", "file": {"uri": url}}

    def state(self, status: Json) -> str:
        assert "_" not in status["state"]
        return str(status["state"].replace("-", "_"))

    def is_task(self, task: Json) -> None:
        super().is_task(task)
        assert task["kind"] == "task"
        assert {said["kind"] for said in task.get("history", ())} <= {"message"}
        assert {said["role"] for said in task.get("history", ())} <= {"user", "agent"}
        parts = [part for artifact in task.get("artifacts", ()) for part in artifact["parts"]]
        assert {part["kind"] for part in parts} <= {"text", "data", "file"}

    def sent(self, result: Json) -> tuple[str, Json]:
        return result["kind"], result

    def frame(self, seq: int | None, result: Json) -> Frame:
        kind = result["kind"].removesuffix("-update")
        if kind == "status":
            ends = {"completed", "failed", "canceled", "rejected", "input-required"}
            assert result["final"] is (result["status"]["state"] in ends)
        else:
            assert "final" not in result
        return Frame(seq, kind, result, result)

    def listing(self, **filters: Any) -> Json:
        names = {"context": "contextId", "size": "limit", "token": "cursor", "artifacts": "includeArtifacts"}
        return {names[name]: value for name, value in filters.items()}

    def page(self, result: Json) -> tuple[list[Json], str, int]:
        assert set(result) == {"tasks", "nextCursor", "totalSize"}
        return result["tasks"], result["nextCursor"], result["totalSize"]

    webhook_name = "pushNotificationConfig"

    def webhook(self, url: str, *, scheme: str = "Bearer", credentials: str | None = None, **more: Any) -> Json:
        secret = {"authentication": {"schemes": [scheme], "credentials": credentials}} if credentials else {}
        return {"url": url, **secret, **more}

    def webhook_of(self, task: str, url: str, **more: Any) -> Json:
        return {"taskId": task, "pushNotificationConfig": self.webhook(url, **more)}

    def webhook_id(self, task: str, id: str | None = None) -> Json:
        return {"id": task} | ({"pushNotificationConfigId": id} if id else {})

    def webhooks(self, result: Any) -> list[tuple[str, Json]]:
        found = result if isinstance(result, list) else [result]
        assert all(set(one) == {"taskId", "pushNotificationConfig"} for one in found)
        return [(one["taskId"], one["pushNotificationConfig"]) for one in found]


class Cast(NamedTuple):
    """Who is in the story."""

    me: Speaker
    again: Speaker
    """The same person in another client."""
    stranger: Speaker


def cast(kind: type[Speaker], version: str | None, door: Door, key: str, other: str) -> Cast:
    me = kind(door=door, key=key, version=version)
    return Cast(me, replace(me, ids=[100]), replace(me, key=other, ids=[200]))
