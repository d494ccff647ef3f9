"""Capabilities that an operator has switched off: cards say so, and each language refuses them through each door."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tasks_app.callers.access import revoke
from tasks_app.models import ApiKey, Webhook
from tests.conftest import Person
from tests.support.cached_cards import forget_cards
from tests.support.doors import StockDoor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]

URL = "http://127.0.0.1:65001/hook"
NEW_MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
OLD_MESSAGE = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
PUSH, STREAMING, EXTENDED = "A2A_PUSH", "A2A_STREAMING", "A2A_EXTENDED_CARD"
CODES = {PUSH: -32003, STREAMING: -32004, EXTENDED: -32004}
REASONS = {
    -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    -32004: "UNSUPPORTED_OPERATION",
    -32007: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
}
NEW_CALLS = {
    "CreateTaskPushNotificationConfig": PUSH,
    "GetTaskPushNotificationConfig": PUSH,
    "ListTaskPushNotificationConfigs": PUSH,
    "DeleteTaskPushNotificationConfig": PUSH,
    "SendStreamingMessage": STREAMING,
    "SubscribeToTask": STREAMING,
    "GetExtendedAgentCard": EXTENDED,
}
OLD_CALLS = {f"tasks/pushNotificationConfig/{verb}": PUSH for verb in ("set", "get", "list", "delete")} | {
    "message/stream": STREAMING,
    "tasks/resubscribe": STREAMING,
    "agent/getAuthenticatedExtendedCard": EXTENDED,
}
PATHS = [
    ("POST", "/tasks/t/pushNotificationConfigs", PUSH),
    ("GET", "/tasks/t/pushNotificationConfigs", PUSH),
    ("GET", "/tasks/t/pushNotificationConfigs/i", PUSH),
    ("DELETE", "/tasks/t/pushNotificationConfigs/i", PUSH),
    ("POST", "/message:stream", STREAMING),
    ("GET", "/tasks/t:subscribe", STREAMING),
    ("POST", "/tasks/t:subscribe", STREAMING),
]
REST = [(verb, prefix + path, setting) for prefix in ("", "/v1") for verb, path, setting in PATHS] + [
    ("GET", "/extendedAgentCard", EXTENDED),
    ("GET", "/v1/card", EXTENDED),
]


@pytest.fixture(autouse=True)
def off(settings: Any) -> Iterator[None]:
    """Switch off all that can be."""
    for name in (PUSH, STREAMING, EXTENDED):
        assert getattr(settings, name), "it is on unless an operator says otherwise"
        setattr(settings, name, False)
    settings.A2A_OUTBOUND_LOOPBACK = True
    forget_cards()
    yield
    forget_cards()


def answer_of(method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    async def ask() -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        async with StockDoor().ask(method, path, content, {"Content-Type": "application/json"} | headers) as reply:
            whole = b"".join([chunk async for chunk in reply.chunks])
            return reply.status, json.loads(whole.removeprefix(b"data: "))

    return asyncio.run(ask())


def called(who: Person, method: str, params: Any, **headers: str) -> Any:
    wire = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    status, answer = answer_of("POST", "/jsonrpc", wire, Authorization=f"Bearer {who.key}", **headers)
    assert status == 200
    return answer


@pytest.mark.parametrize("method", NEW_CALLS)
def test_a_call_of_1_0_is_refused_whatever_its_params(owner: Person, method: str) -> None:
    # A client that accepts streams gets no stream either.
    for params in ({}, {"message": NEW_MESSAGE}, {"id": "t", "taskId": "t", "url": URL}):
        error = called(owner, method, params, Accept="text/event-stream")["error"]
        assert error["code"] == CODES[NEW_CALLS[method]]
        assert error["data"][0]["reason"] == REASONS[error["code"]]
        assert "switched off" in error["data"][0]["metadata"]["detail"]


@pytest.mark.parametrize("method", OLD_CALLS)
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_call_of_0_3_is_refused_with_the_code_of_its_version(owner: Person, method: str, accept: str) -> None:
    expected = -32007 if OLD_CALLS[method] == EXTENDED else CODES[OLD_CALLS[method]]
    error = called(owner, method, {"id": "t", "message": OLD_MESSAGE}, Accept=accept)["error"]
    assert (error["code"], error["data"]["reason"]) == (expected, REASONS[expected])


@pytest.mark.parametrize(("verb", "path", "setting"), REST, ids=str)
def test_a_path_of_rest_is_refused(owner: Person, verb: str, path: str, setting: str) -> None:
    old = path.startswith("/v1")
    body = {"message": OLD_MESSAGE if old else NEW_MESSAGE} if path.endswith("stream") else None
    status, answer = answer_of(verb, path, body, Authorization=f"Bearer {owner.key}")
    code = -32007 if old and setting == EXTENDED else CODES[setting]
    assert (status, answer["error"]["status"]) == (400, "FAILED_PRECONDITION")
    assert answer["error"]["details"][0]["reason"] == REASONS[code]
    assert answer.get("code") == (code if old else None)


def test_the_extended_card_of_0_2_is_not_found(owner: Person) -> None:
    status, answer = answer_of("GET", "/agent/authenticatedExtendedCard", Authorization=f"Bearer {owner.key}")
    assert (status, answer["error"]["code"]) == (404, -32007)


def test_a_message_that_brings_a_webhook_is_refused_and_makes_nothing(owner: Person) -> None:
    new = {"message": NEW_MESSAGE, "configuration": {"taskPushNotificationConfig": {"url": URL}}}
    old = {"message": OLD_MESSAGE, "configuration": {"pushNotificationConfig": {"url": URL}}}
    for method, params in (("SendMessage", new), ("message/send", old)):
        assert called(owner, method, params)["error"]["code"] == -32003
    assert called(owner, "ListTasks", {})["result"]["totalSize"] == 0
    assert not Webhook.objects.exists()


def test_methods_without_the_capability_work(owner: Person) -> None:
    task = called(owner, "SendMessage", {"message": NEW_MESSAGE, "metadata": {"agent": "echo"}})["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert called(owner, "tasks/get", {"id": task["id"]})["result"]["id"] == task["id"]


def test_every_card_shows_that_the_capabilities_are_off() -> None:
    for path, version in (
        ("agent-card.json", "1.0"),
        ("agent-card.json", "0.3"),
        ("agent-card.json", ""),
        ("agent.json", ""),
    ):
        status, card = answer_of("GET", f"/.well-known/{path}", **({"A2A-Version": version} if version else {}))
        assert status == 200
        told = card["capabilities"]
        assert (told["streaming"], told["pushNotifications"]) == (False, False)
        assert told.get("extendedAgentCard", False) is card.get("supportsAuthenticatedExtendedCard", False) is False


def test_a_caller_without_a_key_is_told_of_the_key_first(owner: Person) -> None:
    revoke(ApiKey.objects.all())
    wire = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": "t"}}
    assert answer_of("POST", "/jsonrpc", wire, Authorization=f"Bearer {owner.key}")[0] == 401
