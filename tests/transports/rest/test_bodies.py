"""Bodies of REST calls that are wrong."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.conftest import NO_TLS, TIMES, Server
from tests.transports.rest.calls import JSON, KIND, PLAIN, PROTO, fields, refusal, sending


def test_members_that_nobody_knows_are_ignored(client: httpx.Client, unchanged: None) -> None:
    for query in ("?unknown=1&unknown=2", "?a=%ff&=&&;", "?pageSize=1&metadata=x", "?__proto__=1"):
        assert client.get("/tasks" + query).status_code == 200
        assert client.get("/v1/tasks" + query).status_code == 200


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_a_body_where_none_belongs_is_refused(client: httpx.Client, unchanged: None, verb: str) -> None:
    for path in ("/tasks/t/pushNotificationConfigs/c", "/v1/tasks/t/pushNotificationConfigs/c"):
        error = refusal(client.request(verb, path, json={"a": 1}), 400, "INVALID_REQUEST")
        assert "query" in error["message"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", "", "json"])
def test_a_body_of_another_type_is_refused(client: httpx.Client, unchanged: None, kind: str) -> None:
    body = json.dumps(sending()).encode()
    for path in ("/message:send", "/v1/message:send"):
        refusal(client.post(path, content=body, headers={"Content-Type": kind}), 415, "INVALID_REQUEST")
    headers = JSON | {"Content-Encoding": "gzip"}
    refusal(client.post("/message:send", content=body, headers=headers), 415, "INVALID_REQUEST")


@pytest.mark.parametrize("path", ["/message:send", "/v1/message:stream", "/tasks/t:cancel", "/v1/tasks/t:cancel"])
def test_a_body_that_is_not_json_is_refused(client: httpx.Client, unchanged: None, path: str) -> None:
    for body in (b"{", b"nonsense", b'{"a":1,}', b'{"a":"\xff"}', b'"\\ud800"', b"\0", "{}".encode("utf-16"), b"NaN"):
        refusal(client.post(path, content=body, headers=JSON), 400, "PARSE_ERROR")
    deep = b'{"a":' * 100 + b"1" + b"}" * 100
    assert "64" in refusal(client.post(path, content=deep, headers=JSON), 400, "INVALID_REQUEST")["message"]
    for body in (b"[]", b"1", b'"x"', b"null", b"true"):
        assert fields(refusal(client.post(path, content=body, headers=JSON), 400, "INVALID_PARAMS")) == ["body"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/message:send", {}, "message"),
        ("/message:send", {"message": "hi"}, "message"),
        ("/message:send", {"message": {**PLAIN, "role": "user"}}, "message.role"),
        ("/message:send", {"message": {**PLAIN, "parts": []}}, "message.parts"),
        ("/message:send", {"message": {**PLAIN, "parts": [{"text": "a\0b"}]}}, "message.parts[0].text"),
        ("/message:stream", {"message": {**PLAIN, "messageId": 5}}, "message.messageId"),
        ("/message:send", {"message": PLAIN, "configuration": {"historyLength": -1}}, "configuration.historyLength"),
        ("/v1/message:send", {}, "message"),
        ("/v1/message:send", {"message": {**KIND, "parts": []}}, "message.parts"),
        ("/v1/message:send", {"message": {**PROTO, "content": [{}]}}, "message.content[0]"),
        ("/v1/message:send", {"message": {**PROTO, "content": [{"text": "\0"}]}}, "message.content[0].text"),
        ("/v1/message:stream", {"message": PLAIN}, "message.content"),
        ("/tasks/t:cancel", {"id": "u"}, "id"),
        ("/tasks/t:cancel", {"metadata": 5}, "metadata"),
        ("/v1/tasks/t:cancel", {"name": "tasks/u"}, "name"),
        ("/v1/tasks/t:cancel", {"metadata": []}, "metadata"),
    ],
    ids=str,
)
def test_a_bad_member_of_a_body_is_named(
    client: httpx.Client, unchanged: None, path: str, body: Any, field: str
) -> None:
    assert fields(refusal(client.post(path, json=body), 400, "INVALID_PARAMS")) == [field]


@pytest.mark.parametrize("body", [None, b"", b"{}", b'{"metadata":{"why":"x"}}', b'{"unknown":[1]}'], ids=repr)
def test_a_cancel_needs_no_body_and_may_have_one(client: httpx.Client, body: bytes | None) -> None:
    for path in ("", "/v1"):
        wish = sending(agent="waits", configuration={"returnImmediately": True})
        task = client.post("/message:send", json=wish).json()["task"]["id"]
        answer = client.post(f"{path}/tasks/{task}:cancel", content=body, headers=JSON if body else {})
        assert answer.status_code == 200
        assert answer.json()["status"]["state"] == ("TASK_STATE_CANCELLED" if path else "TASK_STATE_CANCELED")


@pytest.mark.parametrize(
    "path", ["/message:send", "/default/message:send", "/v1/message:send", "/agents/echo/v1/message:send"]
)
def test_a_body_over_the_limit_is_refused_in_the_shape_of_the_path(
    client: httpx.Client, unchanged: None, path: str
) -> None:
    huge = json.dumps(sending({**PLAIN, "parts": [{"text": "x" * 1_100_000}]})).encode()
    error = refusal(client.post(path, content=huge, headers=JSON), 413, "INVALID_REQUEST")
    assert "1000000" in error["message"]


def test_a_body_that_does_not_arrive_is_refused_in_the_shape_of_the_path(server: Server, unchanged: None) -> None:
    def slowly() -> Iterator[bytes]:
        yield b"{"
        time.sleep(TIMES["A2A_BODY_SECONDS"] + 1)
        yield b"}"

    with httpx.Client(timeout=20, verify=NO_TLS) as client:
        answer = client.post(server.url + "/message:send", content=slowly(), headers=JSON)
    assert refusal(answer, 408, "INVALID_REQUEST")["status"] == "DEADLINE_EXCEEDED"
