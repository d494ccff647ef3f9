"""Whatever comes in, what goes out is JSON-RPC, a stream of it, or nothing."""

import asyncio
import json
from typing import Any

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import AsyncRequestFactory
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tasks_app.transports.enveloped import jsonrpc
from tests.conftest import PATIENCE, Person
from tests.transports.values import VALUES, spoiled

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]

NEW = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}, {"data": {"a": [1]}}], "metadata": {"k": "v"}}
OLD = {"kind": "message", "messageId": "o", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
PARAMS: dict[str, Any] = {
    "SendMessage": {"message": NEW, "configuration": {"historyLength": 1, "acceptedOutputModes": ["text/plain"]}},
    "SendStreamingMessage": {"message": NEW, "metadata": {"agent": "echo"}},
    "GetTask": {"id": "t", "historyLength": 1},
    "ListTasks": {"status": "TASK_STATE_COMPLETED", "pageSize": 5, "statusTimestampAfter": "2026-03-02T09:15:05.250Z"},
    "CancelTask": {"id": "t", "metadata": {}},
    "SubscribeToTask": {"id": "t", "tenant": "home"},
    "message/send": {"message": OLD, "configuration": {"blocking": True}},
    "message/stream": {"message": OLD},
    "tasks/get": {"id": "t", "historyLength": 0},
    "tasks/list": {"limit": 1, "cursor": "x", "status": "working"},
    "tasks/resubscribe": {"id": "t"},
    "tasks/pushNotificationConfig/set": {"taskId": "t", "pushNotificationConfig": {"url": "https://example.org"}},
    "tasks/pushNotificationConfig/get": {"id": "t", "pushNotificationConfigId": "c"},
    "CreateTaskPushNotificationConfig": {
        "taskId": "t",
        "url": "https://example.org",
        "authentication": {"scheme": "x"},
    },
    "ListTaskPushNotificationConfigs": {"taskId": "t", "pageSize": 1, "pageToken": "x"},
    "DeleteTaskPushNotificationConfig": {"taskId": "t", "id": "c"},
}


@st.composite
def near_valid(draw: st.DrawFn) -> Any:
    """Return a call with one or two places changed or left out."""
    method = draw(st.sampled_from(sorted(PARAMS)))
    call = {
        "jsonrpc": "2.0",
        "id": draw(st.integers(0, 9) | st.text(max_size=3)),
        "method": method,
        "params": PARAMS[method],
    }
    return draw(spoiled(call))


async def posted(body: bytes, key: str) -> tuple[HttpResponseBase, bytes]:
    request = AsyncRequestFactory().post(
        "/jsonrpc", data=body, content_type="application/json", headers={"Authorization": f"Bearer {key}"}
    )
    async with asyncio.timeout(PATIENCE):
        response = await jsonrpc(request)
        if isinstance(response, StreamingHttpResponse):
            return response, b"".join([chunk async for chunk in response.streaming_content])  # type: ignore[union-attr]
    assert isinstance(response, HttpResponse)
    return response, response.content


def is_answer(wire: Any) -> bool:
    """Return a JSON-RPC response, as JSON-RPC 2.0, section 5 says."""
    if set(wire) not in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}) or wire["jsonrpc"] != "2.0":
        return False
    error = wire.get("error")
    return error is None or (
        isinstance(error["code"], int) and isinstance(error["message"], str) and error["code"] != -32603
    )


def check(body: bytes, owner: Person) -> None:
    response, content = asyncio.run(posted(body, owner.key))
    if response.status_code == 204:
        assert content == b""
        return
    assert response.status_code == 200
    if response["Content-Type"] == "text/event-stream":
        # Not splitlines, which also splits at U+0085 and U+2028: JSON may hold them.
        for line in content.decode().split("\n"):
            assert not line.startswith("event: error")
            assert not line.startswith("data: ") or is_answer(json.loads(line.removeprefix("data: ")))
        return
    wire = json.loads(content)
    assert all(map(is_answer, wire)) if isinstance(wire, list) else is_answer(wire)


@settings(max_examples=60)
@given(st.binary(min_size=1, max_size=200) | st.text(min_size=1, max_size=100).map(str.encode))
def test_arbitrary_bytes_get_an_answer(written_behind: None, owner: Person, body: bytes) -> None:
    check(body, owner)


@settings(max_examples=60)
@given(VALUES | st.lists(near_valid(), max_size=4))
def test_arbitrary_json_and_batches_get_an_answer(written_behind: None, owner: Person, value: Any) -> None:
    check(json.dumps(value).encode(), owner)


@settings(max_examples=500)
@given(near_valid())
@example({"jsonrpc": "2.0", "id": "\x85\u2028", "method": "message/stream", "params": PARAMS["message/stream"]})
def test_calls_that_are_nearly_right_get_an_answer(written_behind: None, owner: Person, call: Any) -> None:
    check(json.dumps(call).encode(), owner)
