"""Whatever verb, path, query and body come in over REST, what goes out is an answer in its shape, a stream, or Django's
404 for what is no path of REST."""

import asyncio
import json
from typing import Any
from urllib.parse import quote

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import AsyncRequestFactory
from django.urls import Resolver404, resolve
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2a.dialects import rest_0_x, v1_0
from a2a.envelopes.bare import form
from tests.conftest import PATIENCE, Person
from tests.transports.values import VALUES, places

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]

OLD, NEW = form(rest_0_x.PROTO).routes, form(v1_0.DIALECT).routes
TEMPLATES = sorted({"/v1" + route.path for route in OLD} | {route.path for route in NEW})
BODIES: list[Any] = [
    {"message": {"messageId": "n", "role": "ROLE_USER", "parts": [{"text": "hi"}, {"data": {"a": [1]}}]}},
    {
        "message": {"messageId": "o", "role": "user", "parts": [{"kind": "text", "text": "hi"}]},
        "configuration": {"blocking": True},
    },
    {
        "request": {
            "message_id": "p",
            "role": "ROLE_USER",
            "content": [{"text": "hi"}, {"data": {"data": {}}}, {"file": {"fileWithBytes": "dGNr"}}],
        },
        "configuration": {"history_length": "0", "pushNotification": {"url": "x"}},
    },
    {"parent": "tasks/t", "configId": "c", "config": {"name": "x", "pushNotificationConfig": {"url": "x"}}},
    {"name": "tasks/t", "id": "t", "tenant": "home", "metadata": {}},
]
WORDS = st.text(max_size=6) | st.sampled_from(["t", "home", "..", "%", "a:b", "\0", "\n", "\u2028", "9" * 40])
NAMES = st.sampled_from(
    ["pageSize", "historyLength", "status", "limit", "includeArtifacts", "tenant", "id", "pageToken", "cursor", "x"]
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Draw a body: none, bytes, or JSON with a place or two changed."""
    if draw(st.integers(0, 5)) == 0:
        return draw(st.binary(max_size=30))
    value = json.loads(json.dumps(draw(st.sampled_from(BODIES))))
    for _ in range(draw(st.integers(0, 2))):
        if not (found := places(value)):
            break
        *path, last = draw(st.sampled_from(found))
        target: Any = value
        for key in path:
            target = target[key]
        target[last] = draw(VALUES)
    return json.dumps(value).encode()


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, str, bytes]:
    path = draw(st.sampled_from(TEMPLATES))
    for name in ("{id}", "{taskId}", "{pushNotificationConfigId}"):
        path = path.replace(name, quote(draw(WORDS), safe=""))
    prefix = draw(st.sampled_from(["", "", "/home", "/agents/echo"]))
    query = "&".join(f"{name}={quote(draw(WORDS), safe='')}" for name in draw(st.lists(NAMES, max_size=3)))
    verb = draw(st.sampled_from(["GET", "GET", "POST", "POST", "DELETE", "PUT"]))
    body = draw(bodies()) if verb == "POST" or draw(st.integers(0, 3)) == 0 else b""
    return verb, f"{prefix}{path}?{query}", body


async def answered(verb: str, path: str, body: bytes, key: str) -> tuple[int, str, bytes]:
    request = AsyncRequestFactory().generic(
        verb, path, data=body, content_type="application/json", headers={"Authorization": f"Bearer {key}"}
    )
    try:
        match = resolve(request.path_info)
    except Resolver404:
        return 404, "", b""
    async with asyncio.timeout(PATIENCE):
        response = await match.func(request, *match.args, **match.kwargs)
        if isinstance(response, StreamingHttpResponse):
            return 200, response["Content-Type"], b"".join([chunk async for chunk in response.streaming_content])  # type: ignore[union-attr]
    assert isinstance(response, HttpResponse)
    return response.status_code, response["Content-Type"], response.content


@settings(max_examples=400)
@given(calls())
@example(("GET", f"/tasks?pageSize={'9' * 40}", b""))
def test_any_call_gets_an_answer(written_behind: None, owner: Person, call: tuple[str, str, bytes]) -> None:
    status, kind, content = asyncio.run(answered(*call, owner.key))
    if not kind:
        return
    if kind == "text/event-stream":
        events = [json.loads(line[6:]) for line in content.decode().split("\n") if line.startswith("data: ")]
        assert all(len(event) == 1 and "error" not in event for event in events)
        return
    assert kind in {"application/json", "application/a2a+json"}
    answer = json.loads(content)
    if status == 200:
        assert "error" not in answer
        return
    assert status in {400, 404, 405}
    assert answer["error"]["code"] == status
    assert answer["error"]["details"][0]["reason"] != "INTERNAL_ERROR"
