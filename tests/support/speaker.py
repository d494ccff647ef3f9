"""A speaker of the story: it says a wish in one language, and returns the answer in neutral words."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from tests.conftest import PATIENCE
from tests.support.descriptions import rpc_description
from tests.support.doors import Door, Events, Reply

Json = dict[str, Any]


class Refused(Exception):
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
    """The form that a client of the dialect folds."""


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
    """The optional chapters of this speaker: batch, card, extensions, tenants, versions."""
    untold: ClassVar[Mapping[str, str]] = {}
    """The chapters that it cannot tell, each with the reason."""
    lacks: ClassVar[frozenset[str]] = frozenset()
    """The wishes that its language has no method for."""
    subscription_ends = False
    """A subscription is answered where a task has ended, and ends with a question."""
    reason_of_ended = "UNSUPPORTED_OPERATION"
    """The reason for a message to a task that has ended."""
    always_has_reason = True
    """Errors have their reason also where there are no facts."""
    versions: ClassVar[frozenset[str]] = frozenset()
    """Values of A2A-Version with which its calls are understood."""
    extensions_headers = ("a2a-extensions", "x-a2a-extensions")
    """The header that tells extensions, and the one that does not."""
    extension_code = -32008
    """The number of a missing extension."""
    other_version_code = -32601
    """The number of a version that the server has, but not for the method or at the path."""
    absent_webhook = -32001
    """The number of a webhook that its task does not have."""
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
    statuses_tell = False
    """An error in an envelope has an HTTP status of its own."""
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
        """Return a message that is a file."""
        raise NotImplementedError

    def wishes(self, *names: str) -> tuple[str, ...]:
        """Return those of the wishes that its language has a method for."""
        return tuple(name for name in names if name not in self.lacks)

    def referring(self, url: str) -> tuple[Json, str]:
        """Return the params of a message with a link to a file, and the path of the link in them."""
        wish = self.sending("", agent="echo")
        parts = "parts" if "parts" in wish["message"] else "content"
        wish["message"][parts] = [self.link(url)]
        return wish, f"message.{parts}[0]"

    def data(self, value: Json) -> Json:
        """Return a part."""
        raise NotImplementedError

    def link(self, url: str) -> Json:
        """Return a part."""
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
        """Return tasks, next token, total."""
        raise NotImplementedError

    webhook_name = ""
    """The name of the webhook's config inside a send."""

    def webhook(self, url: str, **more: Any) -> Json:
        """Return a config inside a send."""
        raise NotImplementedError

    def webhook_of(self, task: str, url: str, **more: Any) -> Json:
        """Return the params of its registration."""
        raise NotImplementedError

    def webhook_id(self, task: str, id: str | None = None) -> Json:
        """Return the params of reading, listing and removing."""
        raise NotImplementedError

    def webhooks(self, result: Any) -> list[tuple[str, Json]]:
        """Return the task and the config of each webhook in a list, or of one webhook as a list."""
        raise NotImplementedError

    # ----------------------------------------------------------- descriptions

    endpoint: ClassVar[str] = "rpc"
    """The endpoint whose description says what is accepted and answered."""

    def rpc_answer(self, answer: Json) -> Json:
        """Return an answer or an event as it came, with its result or its error in a member of that name."""
        return answer

    def check_answer(self, wire: Any, answer: Any, headers: dict[str, str], reply: Reply) -> None:
        """Check that an answer, or an event of a stream, is as the server describes it, and so is what it accepted."""
        description = rpc_description(self.endpoint, headers.get("A2A-Version"))
        if isinstance(answer, list):
            for member in answer:
                call = next((call for call in wire if isinstance(call, dict) and call.get("id") == member["id"]), None)
                self.check_answer(call, member, headers, reply)
            return
        method = wire.get("method") if isinstance(wire, dict) else None
        answer = self.rpc_answer(answer)
        description.check_answer(str(method), answer)
        if "result" in answer:
            description.check_params(str(method), wire.get("params"))

    # ---------------------------------------------------------------- calling

    def call(self, wish: str, params: Any) -> Json:
        self.ids[0] += 1
        return {"jsonrpc": "2.0", "id": f"rpc-{self.ids[0]}", "method": self.names.get(wish, wish), "params": params}

    def request_of(self, wire: Any) -> tuple[str, str, bytes]:
        """Return the verb, the path and the body of a call."""
        return "POST", self.path, json.dumps(wire).encode()

    def answer_of(self, status: int, answer: Any, wire: Any) -> Any:
        """Return an answer in the shape of JSON-RPC, once its own shape was looked at."""
        return answer

    def event_of(self, answer: Json, wire: Json) -> Json:
        """Return what an event of a stream holds."""
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", wire["id"])
        result: Json = answer["result"]
        return result

    def headers(self, **more: str) -> dict[str, str]:
        version = {"A2A-Version": self.version} if self.version else {}
        return {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **version, **more}

    async def settle(self, read: Callable[[], Awaitable[Any]], expected: Any) -> Any:
        """Return the value after notifications: the first, or that expected if the door announces no ends."""
        value = await read()
        deadline = time.monotonic() + PATIENCE
        while not self.door.announces_ends and value != expected and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
            value = await read()
        return value

    async def post(self, wire: Any, **headers: str) -> tuple[int, Any]:
        """Return the status and the JSON of the answer, None if there is none."""
        verb, path, asked = self.request_of(wire)
        sent = self.headers(**headers)
        async with asyncio.timeout(PATIENCE), self.door.ask(verb, path, asked, sent) as reply:
            body = b"".join([chunk async for chunk in reply.chunks])
            if not body:
                return reply.status, None
            assert reply.headers["content-type"] == self.media
            answer = json.loads(body)
            self.check_answer(wire, answer, sent, reply)
            return reply.status, self.answer_of(reply.status, answer, wire)

    async def ask(self, wish: str, params: Any, **headers: str) -> Any:
        """Return the result. Raises Refused."""
        wire = self.call(wish, params)
        status, answer = await self.post(wire, **headers)
        assert status == 200 or self.statuses_tell or not self.has_envelope
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
        """Return the task."""
        kind, value = self.sent(await self.ask("send", self.sending(text, **more)))
        assert kind == "task"
        return value

    async def get(self, task_id: str, **more: Any) -> Json:
        task: Json = await self.ask("get", {"id": task_id, **more})
        self.is_task(task)
        return task

    def is_task(self, task: Json) -> None:
        """Check what every task of the dialect has."""
        assert task["id"]
        assert task["contextId"]
        assert task["status"]["timestamp"].endswith("Z")

    @asynccontextmanager
    async def stream(self, wish: str, params: Any, **headers: str) -> AsyncIterator[AsyncIterator[Frame]]:
        """Its frames as they come. Raises Refused if it does not open."""
        wire = self.call(wish, params)
        verb, path, asked = self.request_of(wire)
        sent = self.headers(**headers)
        async with asyncio.timeout(PATIENCE), self.door.ask(verb, path, asked, sent) as reply:
            assert reply.status == 200 or self.statuses_tell or not self.has_envelope
            events = self.door.events(reply)
            if events is None:
                assert reply.headers["content-type"] == self.media
                answer = json.loads(b"".join([chunk async for chunk in reply.chunks]))
                self.check_answer(wire, answer, sent, reply)
                raise Refused(self.answer_of(reply.status, answer, wire)["error"])
            yield self.frames(events, wire, sent, reply)

    async def frames(self, events: Events, wire: Json, sent: dict[str, str], reply: Reply) -> AsyncIterator[Frame]:
        async for seq, data in events:
            event = json.loads(data)
            self.check_answer(wire, event, sent, reply)
            yield self.frame(seq, self.event_of(event, wire))

    async def follow(self, wish: str, params: Any, **headers: str) -> list[Frame]:
        """Return all frames of a stream that ends."""
        async with self.stream(wish, params, **headers) as frames:
            return [frame async for frame in frames]
