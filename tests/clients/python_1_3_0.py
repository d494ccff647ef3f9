"""Drives our server with the official Python SDK 1.3.0 and prints what it saw, a JSON line for each step.

Runs in the SDK's own environment, where `a2a` is the SDK:
`python -I python_1_3_0.py URL KEY 1.0|0.3 JSONRPC|HTTP+JSON`.
In its 0.3 mode it asks for the 0.3 card, and the SDK chooses its compatibility transport from what that says.
"""

# ruff: noqa: I001  # here a2a is the SDK, a third party

import asyncio
import binascii
import json
import sys
import traceback
import uuid

import httpx
import jwt
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.helpers import get_artifact_text, get_stream_response_text
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    AuthenticationInfo,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.signing import SignatureVerificationError, create_agent_card_signer, create_signature_verifier
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf.json_format import MessageToDict
from jwt.algorithms import ECAlgorithm

URL, KEY, MODE, BINDING = sys.argv[1:5]
HOOK = "http://127.0.0.1:65001/hook?a=b"


class Caller:
    """A client made as a user with a key makes one."""

    def __init__(self, key=KEY, **config):
        headers = {"Authorization": f"Bearer {key}"} | ({"A2A-Version": "0.3"} if MODE == "0.3" else {})
        self.http = httpx.AsyncClient(headers=headers, timeout=20, trust_env=False)
        self.config = ClientConfig(httpx_client=self.http, supported_protocol_bindings=[BINDING], **config)

    async def __aenter__(self):
        self.card = await A2ACardResolver(self.http, URL).get_agent_card()
        self.client = ClientFactory(self.config).create(self.card)
        return self

    async def __aexit__(self, *_):
        await self.http.aclose()

    async def send(self, prefix, text="Hello", metadata=None, **members) -> StreamResponse:
        """Return the only answer to a call that does not stream."""
        (answer,) = [event async for event in self.stream(prefix, text, metadata, **members)]
        return answer

    def stream(self, prefix, text="Hello", metadata=None, **members):
        members = {"parts": [Part(text=text)]} | members
        message = Message(message_id=f"{prefix}-{uuid.uuid4()}", role=Role.ROLE_USER, **members)
        return self.client.send_message(SendMessageRequest(message=message, metadata=metadata))


def state(status) -> str:
    return TaskState.Name(status.state).removeprefix("TASK_STATE_").lower().replace("_", "-")


def content(part: Part) -> object:
    match part.WhichOneof("content"):
        case "raw":
            return {"bytes": part.raw.decode(), "name": part.filename, "type": part.media_type}
        case "url":
            return {"url": part.url, "name": part.filename, "type": part.media_type}
        case "data":
            return MessageToDict(part.data)
        case _:
            return part.text


def contents(parts) -> list[object]:
    return [content(part) for part in parts]


def results(task: Task) -> list[object]:
    return [value for artifact in task.artifacts for value in contents(artifact.parts)]


def seen(event: StreamResponse) -> list[object]:
    """Return an event of a stream: its kind, and what it says."""
    match event.WhichOneof("payload"):
        case "task":
            return ["task", state(event.task.status)]
        case "status_update":
            return ["status", state(event.status_update.status)]
        case "artifact_update":
            update = event.artifact_update
            return ["artifact", contents(update.artifact.parts), update.append, update.last_chunk]
        case "message":
            return ["message", contents(event.message.parts)]


async def card():
    async with Caller() as caller:
        return {
            "name": caller.card.name,
            "speaks": type(caller.client._transport).__name__,
            "streaming": caller.card.capabilities.streaming,
            "push": caller.card.capabilities.push_notifications,
            "skills": [skill.id for skill in caller.card.skills][:1],
        }


async def extended():
    async with Caller(streaming=False) as caller:
        before = {skill.id for skill in caller.card.skills}
        after = await caller.client.get_extended_agent_card(GetExtendedAgentCardRequest())
        return {
            "offered": caller.card.capabilities.extended_agent_card,
            "more": sorted({skill.id for skill in after.skills} - before),
        }


async def signed():
    """Their verifier on our cards, and a card of theirs for ours."""
    async with httpx.AsyncClient(base_url=URL, trust_env=False) as http:
        keys = {key["kid"]: jwt.PyJWK(key) for key in (await http.get("/.well-known/jwks.json")).json()["keys"]}
        verifier = create_signature_verifier(lambda kid, jku: keys[kid], ["ES256"])
        path = ".well-known/agent-card.json?A2A-Version=1.0"
        found = await A2ACardResolver(http, URL).get_agent_card(path, signature_verifier=verifier)
        if MODE == "1.0":  # The form of 0.3 is lost when the SDK turns that card into one of 1.0.
            async with Caller(streaming=False) as caller:
                await caller.client.get_extended_agent_card(GetExtendedAgentCardRequest(), signature_verifier=verifier)
        said = found.provider.organization
        found.provider.organization += "!"
        default = await A2ACardResolver(http, URL).get_agent_card()
        return {"said": said, "altered": verdict(verifier, found), "default": verdict(verifier, default)} | theirs()


def verdict(verifier, card) -> str:
    try:
        return verifier(card) or "believed"
    except SignatureVerificationError as error:
        return type(error).__name__


def theirs() -> dict[str, object]:
    """Return a card with much that is empty, in the bare shape and in the one that the SDK serves."""
    private = ec.generate_private_key(ec.SECP256R1())
    key = ECAlgorithm.to_jwk(private.public_key(), as_dict=True) | {"kid": "theirs"}
    header = {"alg": "ES256", "kid": "theirs", "typ": "JOSE", "jku": None}
    made = AgentCard(
        name="Prüfer",
        description="株式会社 😀 \u2028",
        version="1",
        provider=AgentProvider(organization="Söhne"),
        supported_interfaces=[
            AgentInterface(url="https://x.example", protocol_binding="JSONRPC", protocol_version=v)
            for v in ("1.0", "0.3")
        ],
        capabilities=AgentCapabilities(streaming=False),
        default_input_modes=["text/plain"],
        skills=[AgentSkill(id="s", name="S", description="", tags=[])],
    )
    card = create_agent_card_signer(private, header)(made)
    return {"bare": MessageToDict(card), "served": agent_card_to_dict(card), "keys": {"keys": [key]}}


async def send():
    async with Caller(streaming=False) as caller:
        found = {}
        for prefix in ("artifact-text", "artifact-file", "artifact-file-url", "artifact-data"):
            try:
                task = (await caller.send(f"tck-{prefix}")).task
                found[prefix] = [state(task.status), *results(task)]
            except binascii.Error as error:
                found[prefix] = f"cannot be read: {error}"
        return found


async def message():
    async with Caller(streaming=False) as caller:
        replies = await caller.send("bare", metadata={"agent": "replies"})
        return {"replies": seen(replies), "conformance": seen(await caller.send("tck-message-response"))}


async def credentials():
    """The SDK finds out by itself, from the card, how a key is presented."""
    async with Caller(streaming=False) as caller:
        del caller.http.headers["Authorization"]
        store = InMemoryContextCredentialStore()
        await store.set_credentials("session", "bearer", KEY)
        await caller.client.add_interceptor(AuthInterceptor(store))
        context = ClientCallContext(state={"sessionId": "session"})
        return await refusal(caller.client.get_task(GetTaskRequest(id="nothing"), context=context))


async def immediate():
    async with Caller(streaming=False, polling=True) as caller:
        return state((await caller.send("test-resubscribe-message-id")).task.status)


async def reject():
    async with Caller(streaming=False) as caller:
        return state((await caller.send("tck-reject-task")).task.status)


async def stream():
    async with Caller() as caller:
        return [seen(event) async for event in caller.stream("tck-stream-artifact-chunked")]


async def told():
    """A streamed text as the SDK's own helpers give it: the chunks, the task afterwards, and the task in a list."""
    async with Caller() as caller:
        context = str(uuid.uuid4())
        events = [event async for event in caller.stream("told", metadata={"agent": "tells"}, context_id=context)]
        chunks = [
            get_stream_response_text(event) for event in events if event.WhichOneof("payload") == "artifact_update"
        ]
        task = await caller.client.get_task(GetTaskRequest(id=events[0].task.id))
        found = {"chunks": "".join(chunks), "apart": len(chunks), "task": get_artifact_text(task.artifacts[0])}
        try:
            page = await caller.client.list_tasks(ListTasksRequest(context_id=context, include_artifacts=True))
        except NotImplementedError:
            return found | {"list": found["task"]}
        return found | {"list": get_artifact_text(page.tasks[0].artifacts[0])}


async def turns():
    async with Caller(streaming=False) as caller:
        first = (await caller.send("tck-input-required", "one")).task
        second = (await caller.send("tck-complete-task", "two", task_id=first.id)).task
        histories = []
        for length in (None, 2, 1, 0):
            task = await caller.client.get_task(GetTaskRequest(id=first.id, history_length=length))
            histories.append([contents(message.parts)[0] for message in task.history])
        return {"states": [state(first.status), state(second.status)], "one": first.id == second.id, "get": histories}


async def listing():
    async with Caller(streaming=False) as caller:
        context = str(uuid.uuid4())
        made = [(await caller.send("tck-complete-task", context_id=context)).task.id for _ in range(3)]
        wish = ListTasksRequest(context_id=context, page_size=2)
        try:
            first = await caller.client.list_tasks(wish)
        except NotImplementedError:
            return "not in this version"
        wish.page_token = first.next_page_token
        second = await caller.client.list_tasks(wish)
        ids = [task.id for page in (first, second) for task in page.tasks]
        return {
            "pages": [len(first.tasks), len(second.tasks)],
            "total": first.total_size,
            "last": second.next_page_token,
            "newest first": ids == made[::-1],
        }


async def cancel():
    async with Caller(streaming=False, polling=True) as caller:
        task = (await caller.send("test-resubscribe-message-id")).task
        canceled = await caller.client.cancel_task(CancelTaskRequest(id=task.id))
        return [state(canceled.status), canceled.id == task.id]


async def subscribe():
    """One client streams; another joins in the middle, and both hear the same from then on."""
    async with Caller() as one, Caller() as other:
        heard, joined = [], None

        async def join(task_id):
            return [event async for event in other.client.subscribe(SubscribeToTaskRequest(id=task_id))]

        async for event in one.stream("test-resubscribe-message-id"):
            heard.append(event)
            if len(heard) == 4:
                joined = asyncio.create_task(join(heard[0].task.id))
        first, *rest = await joined
        return {
            "heard": seen(heard[0]) + seen(heard[-1]),
            "joined": seen(first),
            "joined late": len(rest) < len(heard) - 2,
            "same": [str(event) for event in rest] == [str(event) for event in heard[-len(rest) :]],
            "last": seen(rest[-1]),
        }


async def webhooks():
    async with Caller(streaming=False) as caller:
        task = (await caller.send("tck-input-required")).task.id
        secret = AuthenticationInfo(scheme="Bearer", credentials="secret")
        wish = TaskPushNotificationConfig(task_id=task, id="mine", url=HOOK, token="tok", authentication=secret)
        made = await caller.client.create_task_push_notification_config(wish)
        ids = {"task_id": task, "id": "mine"}
        got = await caller.client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**ids))
        every = ListTaskPushNotificationConfigsRequest(task_id=task)
        seen = {
            "made": [made.task_id == task, made.id, made.url, made.token],
            "got": [got.id, got.url, got.token, got.authentication.scheme, got.authentication.credentials],
            "listed": "not in this client",
            "left": "not in this client",
        }
        try:
            listed = await caller.client.list_task_push_notification_configs(every)
        except NotImplementedError:
            return seen
        await caller.client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**ids))
        left = await caller.client.list_task_push_notification_configs(every)
        return seen | {"listed": [config.id for config in listed.configs], "left": len(left.configs)}


async def errors():
    async with Caller(streaming=False) as caller, Caller(key="tdk_nobody") as nobody, Caller() as listener:
        ended = (await caller.send("tck-complete-task")).task.id
        unknown = str(uuid.uuid4())
        calls = {
            "unknown task": caller.client.get_task(GetTaskRequest(id=unknown)),
            "not cancelable": caller.client.cancel_task(CancelTaskRequest(id=ended)),
            "ended": caller.send("tck-complete-task", task_id=ended),
            "unknown stream": anext(listener.client.subscribe(SubscribeToTaskRequest(id=unknown))),
            "no such key": nobody.client.get_task(GetTaskRequest(id=ended)),
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
    signed,
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
