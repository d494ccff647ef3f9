"""Drives our server with the official Python SDK 0.3.26 and prints what it saw, a JSON line for each step.

Runs in the SDK's own environment, where `a2a` is the SDK: `python -I python_0_3_26.py URL KEY 0.3 JSONRPC|HTTP+JSON`.
"""

# ruff: noqa: I001  # here a2a is the SDK, a third party

import asyncio
import base64
import binascii
import json
import sys
import traceback
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.client.middleware import ClientCallContext
from a2a.types import (
    FilePart,
    FileWithBytes,
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)
from a2a.utils import get_artifact_text

URL, KEY, _, BINDING = sys.argv[1:5]  # the version is 0.3 anyway
HOOK = "http://127.0.0.1:65001/hook?a=b"


class Caller:
    """A client made as a user with a key makes one."""

    def __init__(self, key=KEY, interceptors=None, **config):
        self.interceptors = interceptors
        self.http = httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=20, trust_env=False)
        self.config = ClientConfig(httpx_client=self.http, supported_transports=[BINDING], **config)

    async def __aenter__(self):
        self.card = await A2ACardResolver(self.http, URL).get_agent_card()
        self.client = ClientFactory(self.config).create(self.card, interceptors=self.interceptors)
        return self

    async def __aexit__(self, *_):
        await self.http.aclose()

    async def send(self, prefix, text="Hello", metadata=None, **members) -> Task | Message:
        """Return the only answer to a call that does not stream."""
        (answer,) = [event async for event in self.stream(prefix, text, metadata, **members)]
        return answer if isinstance(answer, Message) else answer[0]

    def stream(self, prefix, text="Hello", metadata=None, **members):
        members = {"parts": [Part(root=TextPart(text=text))]} | members
        message = Message(message_id=f"{prefix}-{uuid.uuid4()}", role=Role.user, **members)
        return self.client.send_message(message, request_metadata=metadata)


def state(status) -> str:
    return status.state.value


def content(part: Part) -> object:
    match part.root:
        case FilePart(file=FileWithBytes() as file):
            return {"bytes": base64.b64decode(file.bytes).decode(), "name": file.name, "type": file.mime_type}
        case FilePart(file=file):
            return {"url": file.uri, "name": file.name, "type": file.mime_type}
        case TextPart(text=text):
            return text
        case data:
            return data.data


def contents(parts) -> list[object]:
    return [content(part) for part in parts]


def results(task: Task) -> list[object]:
    return [value for artifact in task.artifacts or [] for value in contents(artifact.parts)]


def seen(event) -> list[object]:
    """An event of a stream: its kind, and what it says. The client folds the task and gives the update beside it."""
    task, update = event
    if update is None:
        return ["task", state(task.status)]
    if isinstance(update, TaskArtifactUpdateEvent):
        return ["artifact", contents(update.artifact.parts), bool(update.append), bool(update.last_chunk)]
    return ["status", state(update.status)]


async def card():
    async with Caller() as caller:
        return {
            "name": caller.card.name,
            "speaks": caller.card.protocol_version,
            "streaming": caller.card.capabilities.streaming,
            "push": caller.card.capabilities.push_notifications,
            "skills": [skill.id for skill in caller.card.skills][:1],
        }


async def extended():
    async with Caller(streaming=False) as caller:
        before = {skill.id for skill in caller.card.skills}
        after = await caller.client.get_card()
        return {
            "offered": caller.card.supports_authenticated_extended_card,
            "more": sorted({skill.id for skill in after.skills} - before),
        }


async def send():
    async with Caller(streaming=False) as caller:
        found = {}
        for prefix in ("artifact-text", "artifact-file", "artifact-file-url", "artifact-data"):
            try:
                task = await caller.send(f"tck-{prefix}")
                found[prefix] = [state(task.status), *results(task)]
            except binascii.Error as error:
                found[prefix] = f"cannot be read: {error}"
        return found


async def message():
    async with Caller(streaming=False) as caller:
        answers = {
            "replies": await caller.send("bare", metadata={"agent": "replies"}),
            "conformance": await caller.send("tck-message-response"),
        }
        return {
            name: ["message", contents(answer.parts)] if isinstance(answer, Message) else ["task", state(answer.status)]
            for name, answer in answers.items()
        }


async def credentials():
    """The SDK finds out by itself, from the card, how a key is presented."""
    store = InMemoryContextCredentialStore()
    await store.set_credentials("session", "bearer", KEY)
    async with Caller(streaming=False, interceptors=[AuthInterceptor(store)]) as caller:
        del caller.http.headers["Authorization"]
        context = ClientCallContext(state={"sessionId": "session"})
        return await refusal(caller.client.get_task(TaskQueryParams(id="nothing"), context=context))


async def immediate():
    async with Caller(streaming=False, polling=True) as caller:
        return state((await caller.send("test-resubscribe-message-id")).status)


async def reject():
    async with Caller(streaming=False) as caller:
        return state((await caller.send("tck-reject-task")).status)


async def stream():
    async with Caller() as caller:
        events = [(seen(event), event[0]) async for event in caller.stream("tck-stream-artifact-chunked")]
        # The last folded task contains the whole stream.
        assert results(events[-1][1]) == ["chunk-1 ", "chunk-2"], events[-1][1]
        return [what for what, _ in events]


async def told():
    """A streamed text as the SDK's own helper gives it: the chunks, and the task afterwards."""
    async with Caller() as caller:
        chunks, folded = [], None
        async for folded, update in caller.stream("told", metadata={"agent": "tells"}):  # noqa: B007  # the last one
            if isinstance(update, TaskArtifactUpdateEvent):
                # Read at once: the SDK's fold adds later chunks to the parts of the first.
                chunks.append(get_artifact_text(update.artifact))
        task = await caller.client.get_task(TaskQueryParams(id=folded.id))
        # The SDK's fold keeps a part for each chunk, so the helper must put nothing between parts.
        whole = get_artifact_text(task.artifacts[0])
        assert get_artifact_text(folded.artifacts[0], delimiter="") == whole
        return {"chunks": "".join(chunks), "apart": len(chunks), "task": whole, "list": whole}


async def turns():
    async with Caller(streaming=False) as caller:
        first = await caller.send("tck-input-required", "one")
        second = await caller.send("tck-complete-task", "two", task_id=first.id)
        histories = []
        for length in (None, 2, 1, 0):
            task = await caller.client.get_task(TaskQueryParams(id=first.id, history_length=length))
            histories.append([contents(message.parts)[0] for message in task.history or []])
        return {"states": [state(first.status), state(second.status)], "one": first.id == second.id, "get": histories}


async def listing():
    return "not in this version"


async def cancel():
    async with Caller(streaming=False, polling=True) as caller:
        task = await caller.send("test-resubscribe-message-id")
        canceled = await caller.client.cancel_task(TaskIdParams(id=task.id))
        return [state(canceled.status), canceled.id == task.id]


async def subscribe():
    """One client streams; another joins in the middle, and both hear the same from then on."""
    async with Caller() as one, Caller() as other:
        heard, joined = [], None

        async def join(task_id):
            return [(seen(event), event[1]) async for event in other.client.resubscribe(TaskIdParams(id=task_id))]

        async for event in one.stream("test-resubscribe-message-id"):
            heard.append((seen(event), event[1]))
            if len(heard) == 4:
                joined = asyncio.create_task(join(event[0].id))
        first, *rest = await joined
        return {
            "heard": heard[0][0] + heard[-1][0],
            "joined": first[0],
            "joined late": len(rest) < len(heard) - 2,
            "same": rest == heard[-len(rest) :],
            "last": rest[-1][0],
        }


async def webhooks():
    """This client has no method to list or delete them."""
    async with Caller(streaming=False) as caller:
        task = (await caller.send("tck-input-required")).id
        secret = PushNotificationAuthenticationInfo(schemes=["Bearer"], credentials="secret")
        push = PushNotificationConfig(id="mine", url=HOOK, token="tok", authentication=secret)
        wish = TaskPushNotificationConfig(task_id=task, push_notification_config=push)
        made = await caller.client.set_task_callback(wish)
        ids = GetTaskPushNotificationConfigParams(id=task, push_notification_config_id="mine")
        config, got = (
            made.push_notification_config,
            (await caller.client.get_task_callback(ids)).push_notification_config,
        )
        return {
            "made": [made.task_id == task, config.id, config.url, config.token],
            "got": [
                got.id,
                got.url,
                got.token or "",
                got.authentication.schemes[0],
                got.authentication.credentials or "",
            ],
            "listed": "not in this client",
            "left": "not in this client",
        }


async def errors():
    async with Caller(streaming=False) as caller, Caller(key="tdk_nobody") as nobody, Caller() as listener:
        ended = (await caller.send("tck-complete-task")).id
        unknown = str(uuid.uuid4())
        calls = {
            "unknown task": caller.client.get_task(TaskQueryParams(id=unknown)),
            "not cancelable": caller.client.cancel_task(TaskIdParams(id=ended)),
            "ended": caller.send("tck-complete-task", task_id=ended),
            "ended stream": anext(listener.stream("late", task_id=ended)),
            "unknown stream": anext(listener.client.resubscribe(TaskIdParams(id=unknown))),
            "no such key": nobody.client.get_task(TaskQueryParams(id=ended)),
            "wrong field": caller.send("tck-complete-task", parts=[]),
        }
        return {name: await refusal(call) for name, call in calls.items()}


async def refusal(call) -> str:
    """Return the error that the SDK makes of our answer."""
    try:
        return f"no error: {await call}"
    except Exception as error:  # noqa: BLE001  # the class is what is looked at
        return f"{type(error).__name__}: {error}"


STEPS = (
    card,
    extended,
    credentials,
    send,
    message,
    immediate,
    reject,
    stream,
    told,
    turns,
    listing,
    cancel,
    subscribe,
    webhooks,
    errors,
)


async def main() -> None:
    for step in STEPS:
        try:
            line = {"saw": step.__name__, "what": await step()}
        except Exception:  # noqa: BLE001  # whatever it is, the test shows it
            line = {"saw": step.__name__, "failed": traceback.format_exc()}
        sys.stdout.write(json.dumps(line) + "\n")


asyncio.run(main())
