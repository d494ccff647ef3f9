"""One task, seen from every language at once: created in one, continued in another, read and followed in all.

The JSON of each language is written out here. The test also looks at the deliveries to webhooks of several languages,
and at the operators' page of the task.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.conftest import PATIENCE, Person, Server, until
from tests.support.doors import HttpDoor, LiveDoor, StockDoor
from tests.support.receiver import Receiver, receiver

Json = dict[str, Any]
QUESTION, ANSWER = "Which one?", "one and two"
ADR, ADR_CALL = "ADR-002", {"method": "asks", "params": {"text": "one"}}


class Language(NamedTuple):
    """The calls of a language about a task. A call is a verb, a path and a body."""

    send: Callable[[str, str | None], tuple[str, str, Any]]
    """Begins a task of the agent `asks`, or continues the task with the id."""
    get: Callable[[str], tuple[str, str, Any]]
    headers: Mapping[str, str] = {}
    hook: Callable[[str, str], Any] | None = None
    """Registers a webhook for a task; None for a language without any."""
    follow: Callable[[str], tuple[str, str, Any]] | None = None
    """Follows a task beyond its question."""
    ended: Callable[[str], tuple[str, str, Any]] | None = None
    """Follows a task that has ended."""


def rpc(method: str, params: Json, path: str = "/jsonrpc") -> tuple[str, str, Any]:
    return "POST", path, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def message(text: str, task: str | None, **more: Any) -> Json:
    return {"messageId": str(uuid4()), **more} | ({"taskId": task} if task else {})


def new_message(text: str, task: str | None) -> Json:
    return {"message": message(text, task, role="ROLE_USER", parts=[{"text": text}]), "metadata": {"agent": "asks"}}


def old_message(text: str, task: str | None) -> Json:
    parts = [{"kind": "text", "text": text}]
    return {
        "message": message(text, task, kind="message", role="user", parts=parts),
        "configuration": {"blocking": False},
        "metadata": {"agent": "asks"},
    }


def proto_message(text: str, task: str | None) -> Json:
    content = [{"text": text}]
    return {"message": message(text, task, role="ROLE_USER", content=content), "metadata": {"agent": "asks"}}


def acp_message(text: str, task: str | None) -> tuple[str, str, Any]:
    content = {"role": "user", "parts": [{"type": "TextPart", "content": text}]}
    if task:
        return rpc("tasks.send", {"taskId": task, "message": content})
    return rpc("tasks.create", {"initialMessage": content, "metadata": {"agent": "asks"}})


def zone_message(text: str, task: str | None) -> tuple[str, str, Any]:
    chat = {"channel": "C1", "text": text, "bot_token": "xoxb-1", "wait": False}
    return rpc("execute_task", chat | ({"task_id": task} if task else {"agent": "asks"}))


def old_hook(path: str, member: str = "pushNotificationConfig") -> Callable[[str, str], Any]:
    def hook(task: str, url: str) -> Any:
        params = {"taskId": task, member: {"id": path.strip("/"), "url": url}}
        return rpc("tasks/pushNotificationConfig/set", params, path)

    return hook


LANGUAGES = {
    "1.0": Language(
        send=lambda text, task: rpc("SendMessage", new_message(text, task)),
        get=lambda task: rpc("GetTask", {"id": task}),
        headers={"A2A-Version": "1.0"},
        hook=lambda task, url: rpc("CreateTaskPushNotificationConfig", {"taskId": task, "id": "new", "url": url}),
        follow=lambda task: rpc("SubscribeToTask", {"id": task}),
    ),
    "0.3": Language(
        send=lambda text, task: rpc("message/send", old_message(text, task)),
        get=lambda task: rpc("tasks/get", {"id": task}),
        headers={"A2A-Version": "0.3"},
        hook=old_hook("/jsonrpc"),
        ended=lambda task: rpc("tasks/resubscribe", {"id": task}),
    ),
    "0.2": Language(
        send=lambda text, task: rpc("message/send", old_message(text, task)),
        get=lambda task: rpc("tasks/get", {"taskId": task}),
        headers={"A2A-Version": "0.2"},
        ended=lambda task: rpc("tasks/resubscribe", {"taskId": task}),
    ),
    "REST of 1.0": Language(
        send=lambda text, task: ("POST", "/message:send", new_message(text, task)),
        get=lambda task: ("GET", f"/tasks/{task}", None),
        headers={"A2A-Version": "1.0"},
        follow=lambda task: ("GET", f"/tasks/{task}:subscribe", None),
    ),
    "REST of 0.3": Language(
        send=lambda text, task: ("POST", "/v1/message:send", proto_message(text, task)),
        get=lambda task: ("GET", f"/v1/tasks/{task}", None),
        ended=lambda task: ("GET", f"/v1/tasks/{task}:subscribe", None),
    ),
    "ACP": Language(
        send=acp_message,
        get=lambda task: rpc("tasks.get", {"taskId": task}),
        headers={"Accept": "application/json, text/event-stream"},
        hook=lambda task, url: rpc("tasks.subscribe", {"taskId": task, "callbackUrl": url}),
        follow=lambda task: rpc("tasks.subscribe", {"taskId": task, "events": ["NEW_ARTIFACT", "COMPLETED"]}),
    ),
    "VAPORA": Language(
        send=lambda text, task: rpc("message/send", old_message(text, task), "/a2a"),
        get=lambda task: rpc("tasks/get", {"id": task}, "/a2a"),
        hook=old_hook("/a2a"),
        ended=lambda task: rpc("tasks/resubscribe", {"id": task}, "/a2a"),
    ),
    "SPARC": Language(
        send=lambda text, task: rpc("message/send", old_message(text, task), "/sparc"),
        get=lambda task: rpc("tasks/get", {"taskId": task}, "/sparc"),
        hook=old_hook("/sparc", "config"),
        ended=lambda task: rpc("tasks/resubscribe", {"taskId": task}, "/sparc"),
    ),
    "zones": Language(send=zone_message, get=lambda task: rpc("get_task", {"task_id": task})),
}
OUTCOMES = {"success": "completed", "accepted": "working"}
"""The states of outcomes of zones."""


class Seen(NamedTuple):
    """A task in neutral words."""

    state: str
    text: str
    """The text of its artifacts."""
    asks: bool
    """True if the question is shown."""


def task_in(answer: Any) -> Json:
    """Return the task of an answer, out of every wrapper."""
    assert "error" not in answer, answer
    for name in ("result", "params", "data", "task"):
        answer = answer.get(name, answer)
    task: Json = answer
    return task


def seen(answer: Any) -> Seen:
    task = task_in(answer)
    status = task["status"]
    if "response_text" in task:
        text, asks = task["response_text"], status == "input_required"
        return Seen(OUTCOMES.get(status, status), "" if asks else text, text == QUESTION)
    state = status if isinstance(status, str) else status["state"]
    parts = [part for artifact in task.get("artifacts", ()) for part in artifact["parts"]]
    text = "".join(part.get("text") or part.get("content") for part in parts)
    neutral = state.removeprefix("TASK_STATE_").lower().replace("-", "_")
    return Seen(neutral, text, QUESTION in json.dumps(task))


@dataclass
class Caller:
    """A client of every language, at one door."""

    door: HttpDoor
    key: str

    def headers(self, name: str) -> dict[str, str]:
        own = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        return {**own, **(LANGUAGES[name].headers if name in LANGUAGES else {"X-Request-ID": str(uuid4())})}

    async def ask(self, name: str, call: tuple[str, str, Any]) -> Any:
        verb, path, wire = call
        body = b"" if wire is None else json.dumps(wire).encode()
        async with asyncio.timeout(PATIENCE), self.door.ask(verb, path, body, self.headers(name)) as reply:
            answer = json.loads(b"".join([chunk async for chunk in reply.chunks]))
            assert reply.status == 200, answer
            return answer

    async def begin(self, name: str) -> str:
        """Begin a task, and return its id. ADR-002 has calls alone, whose answer names the task."""
        if name == ADR:
            answer = await self.ask(name, ("POST", "/invoke", {"jsonrpc": "2.0", "id": 1, **ADR_CALL}))
            assert (answer["result"]["status"], answer["result"]["question"]) == ("input_required", QUESTION)
            return str(answer["result"]["task_id"])
        task = task_in(await self.ask(name, LANGUAGES[name].send("one", None)))
        return str(task.get("id") or task.get("taskId") or task["task_id"])

    async def everywhere(self, task: str) -> dict[str, Seen]:
        return {name: seen(await self.ask(name, language.get(task))) for name, language in LANGUAGES.items()}

    async def settled(self, task: str, state: str) -> None:
        """Wait until the task is in a state, in the first language."""
        name = next(iter(LANGUAGES))
        async with asyncio.timeout(PATIENCE):
            while seen(await self.ask(name, LANGUAGES[name].get(task))).state != state:  # noqa: ASYNC110  # another thread
                await asyncio.sleep(0.05)

    async def follow(self, name: str, call: tuple[str, str, Any], begun: asyncio.Event | None = None) -> list[Any]:
        """Return the events of a stream that ends. The event is set when the first one is there."""
        verb, path, wire = call
        body = b"" if wire is None else json.dumps(wire).encode()
        events = []
        async with asyncio.timeout(PATIENCE), self.door.ask(verb, path, body, self.headers(name)) as reply:
            stream = self.door.events(reply)
            assert stream is not None
            async for _, data in stream:
                events.append(json.loads(data))
                if begun:
                    begun.set()
        return events


def text_of(events: list[Any]) -> str:
    """Return the text of the artifacts in the events of a stream, wherever they are. In ACP they are the data of a
    notification."""

    def texts(value: Any, inside: bool) -> Iterator[str]:
        if isinstance(value, dict):
            for name, inner in value.items():
                if inside and name in ("text", "content") and isinstance(inner, str):
                    yield inner
                else:
                    yield from texts(inner, inside or name in ("artifact", "artifacts", "data"))
        elif isinstance(value, list):
            for inner in value:
                yield from texts(inner, inside)

    return "".join(texts(events, False))


async def tell(caller: Caller, creator: str, there: Receiver) -> str:
    """Tell the life of one task, and return its id."""
    task = await caller.begin(creator)
    await caller.settled(task, "input_required")
    assert await caller.everywhere(task) == dict.fromkeys(LANGUAGES, Seen("input_required", "", True))
    for name, language in LANGUAGES.items():
        if language.hook:
            await caller.ask(name, language.hook(task, f"{there.url}/{name}"))

    async def followed(name: str, call: tuple[str, str, Any]) -> tuple[Awaitable[list[Any]], asyncio.Event]:
        begun = asyncio.Event()
        stream = asyncio.create_task(caller.follow(name, call, begun))
        return stream, begun

    streams = {
        name: await followed(name, language.follow(task)) for name, language in LANGUAGES.items() if language.follow
    }
    async with asyncio.timeout(PATIENCE):
        for _, begun in streams.values():
            await begun.wait()
    names = list(LANGUAGES)
    second = names[(names.index(creator) + 1) % len(names) if creator in names else 0]
    await caller.ask(second, LANGUAGES[second].send("two", task))
    for name, (stream, _) in streams.items():
        events = await stream
        assert (name, text_of(events)) == (name, ANSWER)
        assert 'COMPLETED"' in json.dumps(events[-1])
    await caller.settled(task, "completed")
    whole = await caller.everywhere(task)
    assert {(shown.state, shown.text) for shown in whole.values()} == {("completed", ANSWER)}
    for name, language in LANGUAGES.items():
        if language.ended:
            assert text_of(await caller.follow(name, language.ended(task))) == ANSWER
    return task


def has_heard(there: Receiver, path: str, mark: str) -> bool:
    return any(mark in got.raw.decode() for got in there.at(path))


def check_deliveries(there: Receiver) -> None:
    """Check that the webhook of each language hears of the end, in the words of its language."""
    ends = {"1.0": "TASK_STATE_COMPLETED", "ACP": '"COMPLETED"'}
    ends |= dict.fromkeys(("0.3", "VAPORA", "SPARC"), '"completed"')
    for name, mark in ends.items():
        until(partial(has_heard, there, f"/{name}", mark), f"the webhook of {name} hears of the end")
    for name in ("0.3", "VAPORA", "SPARC", "ACP"):
        assert seen(there.at(f"/{name}")[-1].json).text == ANSWER


CREATORS = pytest.mark.parametrize("creator", [*LANGUAGES, ADR])


@CREATORS
def test_a_real_server_shows_one_task_in_every_language(server: Server, creator: str) -> None:
    with receiver() as there:
        asyncio.run(tell(Caller(LiveDoor(server.url), server.owner), creator, there))
        check_deliveries(there)


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
@pytest.mark.requirement("ZONE-01", "SPARC-01")
@CREATORS
def test_one_task_is_the_same_in_every_language_and_for_operators(
    service: None, owner: Person, settings: Any, client: Client, creator: str
) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = settings.DEBUG = True
    with receiver() as there:
        task = asyncio.run(tell(Caller(StockDoor(), owner.key), creator, there))
        check_deliveries(there)
    client.force_login(User.objects.create_superuser("ada", password="a long password"))
    page = client.get(reverse("admin:tasks_app_task_change", args=[task])).content.decode()
    assert all(words in page for words in (QUESTION, ANSWER, "completed"))
