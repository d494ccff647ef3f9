"""REST at a real server: every route, and everything that can be wrong with a call, told in one shape; nothing of what
is wrong is stored."""

import json
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tasks_app.callers.paths import LEAN, RESERVED, STOCK, is_lean
from tests.conftest import NO_TLS, Server
from tests.support.story import LiveDoor, NewSpeaker

pytestmark = pytest.mark.storage

PLAIN: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
KIND: dict[str, Any] = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
PROTO: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}
JSON = {"Content-Type": "application/json"}
HOOK: dict[str, Any] = {"url": "https://nobody.invalid/"}


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {server.owner}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=20, verify=NO_TLS) as client:
        yield client


def sending(message: dict[str, Any] = PLAIN, agent: str = "echo", **more: Any) -> dict[str, Any]:
    return {"message": message | {"messageId": str(uuid4())}, "metadata": {"agent": agent}, **more}


def refusal(response: httpx.Response, status: int, reason: str) -> dict[str, Any]:
    """The error, which must be whole and harmless."""
    assert response.status_code == status, response.text
    old = response.request.url.path.startswith("/v1/") or "/v1/" in response.request.url.path
    assert response.headers["content-type"] == ("application/json" if old else "application/a2a+json")
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-request-id"]
    assert "Traceback" not in response.text
    answer = response.json()
    assert set(answer) == ({"error", "code", "message", "type"} if old else {"error"})
    error: dict[str, Any] = answer["error"]
    assert (error["code"], error["details"][0]["reason"]) == (status, reason), error
    return error


def fields(error: dict[str, Any]) -> list[str]:
    return [found["field"] for detail in error["details"] for found in detail.get("fieldViolations", [])]


# ------------------------------------------------------------------- the routes


@pytest.mark.parametrize("base", ["", "/default", "/agents/echo", "/agents/echo/default"])
def test_every_route_of_1_0_answers_at_the_root_for_a_tenant_and_for_an_agent(client: httpx.Client, base: str) -> None:
    sent = client.post(f"{base}/message:send", json=sending(agent="echo"))
    assert (sent.status_code, sent.headers["content-type"]) == (200, "application/a2a+json")
    task = sent.json()["task"]
    assert client.get(f"{base}/tasks/{task['id']}").json() == task
    assert "history" not in client.get(f"{base}/tasks/{task['id']}?historyLength=0").json()
    page = client.get(f"{base}/tasks", params={"contextId": task["contextId"], "includeArtifacts": "true"}).json()
    assert (page["tasks"], page["totalSize"]) == ([task], 1)
    refusal(client.post(f"{base}/tasks/{task['id']}:cancel"), 400, "TASK_NOT_CANCELABLE")
    for verb in ("GET", "POST"):
        refusal(client.request(verb, f"{base}/tasks/{task['id']}:subscribe"), 400, "UNSUPPORTED_OPERATION")
    webhooks = f"{base}/tasks/{task['id']}/pushNotificationConfigs"
    assert client.get(webhooks).json() == {"configs": [], "nextPageToken": ""}
    refusal(client.get(f"{webhooks}/c"), 404, "TASK_NOT_FOUND")
    assert client.delete(f"{webhooks}/c").json() == {}
    card = client.get(f"{base}/extendedAgentCard").json()
    assert {"protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}.items() <= card["supportedInterfaces"][2].items()
    with client.stream("POST", f"{base}/message:stream", json=sending()) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["x-accel-buffering"] == "no"
        frames = stream.read().decode()
    assert frames.startswith('retry: 2000\nid: 1\ndata: {"task":')
    assert "jsonrpc" not in frames


@pytest.mark.parametrize("message", [KIND, PROTO], ids=["kind", "proto"])
@pytest.mark.parametrize("base", ["/v1", "/agents/echo/v1"])
def test_every_route_of_0_3_answers_at_the_root_and_for_an_agent(
    client: httpx.Client, base: str, message: dict[str, Any]
) -> None:
    sent = client.post(f"{base}/message:send", json=sending(message))
    assert (sent.status_code, sent.headers["content-type"]) == (200, "application/json")
    task = sent.json()["task"]
    assert ("kind" in task) == (message is KIND)
    got = client.get(f"{base}/tasks/{task['id']}").json()
    assert (got["id"], got["status"]["state"]) == (task["id"], "TASK_STATE_COMPLETED")
    page = client.get(
        f"{base}/tasks", params={"contextId": task["contextId"], "limit": 1, "status": "completed"}
    ).json()
    assert page["totalSize"] == 1
    assert client.get(f"{base}/tasks", params={"status": "TASK_STATE_CANCELLED", "limit": "1"}).status_code == 200
    refusal(
        client.post(f"{base}/tasks/{task['id']}:cancel", json={"name": f"tasks/{task['id']}"}),
        400,
        "TASK_NOT_CANCELABLE",
    )
    for verb in ("GET", "POST"):
        with client.stream(verb, f"{base}/tasks/{task['id']}:subscribe") as stream:
            (event,) = [line for line in stream.read().decode().splitlines() if line.startswith("data: ")]
        assert json.loads(event.removeprefix("data: ")) == {"task": got}
    webhooks = f"{base}/tasks/{task['id']}/pushNotificationConfigs"
    assert client.get(webhooks).json() == {"configs": []}
    refusal(client.get(f"{webhooks}/c"), 404, "TASK_NOT_FOUND")
    assert client.delete(f"{webhooks}/c").json() == {}
    assert client.get(f"{base}/card").json()["additionalInterfaces"][1]["transport"] == "HTTP+JSON"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("tasks/{task}:cancel", {"taskId": "OTHER"}, "taskId"),
        ("tasks/{task}:cancel", {"name": "tasks/OTHER"}, "name"),
        ("tasks/{task}/pushNotificationConfigs", {"taskId": "OTHER", "pushNotificationConfig": HOOK}, "taskId"),
        ("tasks/{task}/pushNotificationConfigs", {"parent": "tasks/OTHER", "config": HOOK}, "parent"),
        (
            "tasks/{task}/pushNotificationConfigs",
            {"config": {"name": "tasks/OTHER/pushNotificationConfigs/c", "pushNotificationConfig": HOOK}},
            "name",
        ),
        ("task/{task}/pushNotificationConfigs", {"configId": "A", "config": HOOK | {"id": "B"}}, "configId"),
        ("tasks/{task}/pushNotificationConfigs?configId=A", {"config": HOOK | {"id": "B"}}, "configId"),
    ],
    ids=str,
)
def test_a_body_that_names_something_else_than_the_path_is_refused(
    client: httpx.Client, path: str, body: dict[str, Any], field: str
) -> None:
    task = client.post("/v1/message:send", json=sending(PROTO)).json()["task"]["id"]
    refused = client.post(f"/v1/{path.format(task=task)}", json=body)
    assert refused.status_code == 400
    (found,) = refused.json()["error"]["details"][1]["fieldViolations"]
    assert found["field"] == field


def test_a_webhook_may_come_by_the_route_that_the_protobuf_misspells(client: httpx.Client) -> None:
    task = client.post("/v1/message:send", json=sending(PROTO)).json()["task"]["id"]
    written = client.post(f"/v1/task/{task}/pushNotificationConfigs", json={"configId": "A", "config": HOOK})
    assert (written.status_code, written.json()["pushNotificationConfig"]["id"]) == (200, "A")
    named = {"config": {"name": f"tasks/{task}", "pushNotificationConfig": HOOK}}
    assert client.post(f"/v1/tasks/{task}/pushNotificationConfigs", json=named).status_code == 200


def test_protobuf_leaves_out_the_schemes_of_a_webhook_that_has_none(client: httpx.Client) -> None:
    task = client.post("/v1/message:send", json=sending(PROTO)).json()["task"]["id"]
    nowhere = {"id": "c", "url": "https://nobody.invalid/", "token": "", "authentication": {}}
    config = {"name": f"tasks/{task}/pushNotificationConfigs/c", "push_notification_config": nowhere}
    body = {"parent": f"tasks/{task}", "config_id": "c", "config": config}
    written = client.post(f"/v1/tasks/{task}/pushNotificationConfigs", json=body)
    assert (written.status_code, written.json()["pushNotificationConfig"]["id"]) == (200, "c")
    inline = sending(PROTO)
    inline.setdefault("configuration", {})["pushNotification"] = nowhere
    assert client.post("/v1/message:send", json=inline).status_code == 200


def test_a_stream_is_resumed_by_get_with_the_last_event(client: httpx.Client) -> None:
    with client.stream("POST", "/message:stream", json=sending(agent="form-async-generator")) as stream:
        whole = stream.read().decode()
    task = json.loads(whole.split("data: ")[1].split("\n")[0])["task"]["id"]
    with client.stream("GET", f"/tasks/{task}:subscribe", headers={"Last-Event-ID": "3"}) as stream:
        resumed = stream.read().decode()
    assert [line for line in resumed.splitlines() if line.startswith("id: ")] == ["id: 3", "id: 4", "id: 5"]
    assert resumed.endswith(whole[whole.index("id: 4") :])


def test_all_doors_show_the_same_task(server: Server, client: httpx.Client) -> None:
    task = client.post("/message:send", json=sending()).json()["task"]
    over_rpc = NewSpeaker(door=LiveDoor(server.url), key=server.owner)
    asked = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task["id"]}}
    assert client.post(over_rpc.path, json=asked).json()["result"] == task


def test_a_message_that_was_sent_over_one_door_is_known_at_the_other(client: httpx.Client) -> None:
    wish = sending(agent="form-coroutine")
    task = client.post("/message:send", json=wish).json()["task"]
    again = client.post("/jsonrpc", json={"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": wish}).json()
    assert again["result"]["task"] == task
    wish["message"]["parts"] = [{"text": "another"}]
    refusal(client.post("/message:send", json=wish), 400, "IDEMPOTENCY_CONFLICT")


def test_both_json_types_are_taken_with_parameters(client: httpx.Client) -> None:
    for kind in ("application/json; charset=utf-8", "application/a2a+json", "Application/JSON"):
        for path, message in (("/message:send", PLAIN), ("/v1/message:send", KIND)):
            body = json.dumps(sending(message)).encode()
            assert client.post(path, content=body, headers={"Content-Type": kind}).status_code == 200


# ------------------------------------------------------------------ who may ask


def test_a_stranger_without_a_key_gets_a_challenge(server: Server, unchanged: None) -> None:
    for key in ("", "Bearer nobody", "Basic eDp5", "Bearer " + "x" * 600):
        for path in ("/tasks/t", "/v1/tasks/t", "/nowhere/tasks", "/extendedAgentCard", "/tasks?pageSize=abc"):
            answer = httpx.get(server.url + path, headers={"Authorization": key} if key else {}, verify=NO_TLS)
            refusal(answer, 401, "UNAUTHENTICATED")
            assert answer.headers["www-authenticate"].startswith("Bearer ")


def test_a_foreign_tenant_is_as_unknown_as_a_missing_one(server: Server, client: httpx.Client, unchanged: None) -> None:
    answers = [
        client.post(f"/{tenant}/message:send", json=sending()).json() for tenant in ("abroad", "nowhere", "%E2%80%A8")
    ]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["error"]["details"][0]["reason"] == "TASK_NOT_FOUND"
    for path in ("/abroad/tasks", "/nowhere/tasks", "/nowhere/tasks/t", "/agents/echo/nowhere/tasks"):
        refusal(client.get(path), 404, "TASK_NOT_FOUND")


def test_path_and_body_agree_about_the_tenant(client: httpx.Client, unchanged: None) -> None:
    for wrong in ({"tenant": "other"}, {"tenant": 5}):
        answer = client.post("/default/message:send", json=sending() | wrong)
        assert fields(refusal(answer, 400, "INVALID_PARAMS")) == ["tenant"]
    assert fields(refusal(client.get("/default/tasks?tenant=other"), 400, "INVALID_PARAMS")) == ["tenant"]
    assert client.get("/default/tasks?tenant=default&pageSize=1").status_code == 200
    refusal(client.get("/tasks?tenant=other"), 404, "TASK_NOT_FOUND")


def test_an_agent_that_does_not_exist_is_told(client: httpx.Client, unchanged: None) -> None:
    for path, message in (("/message:send", PLAIN), ("/v1/message:send", KIND), ("/v1/message:send", PROTO)):
        refusal(client.post(f"/agents/nobody{path}", json=sending(message)), 404, "UNKNOWN_AGENT")
        refusal(client.post(path, json=sending(message, agent="nobody")), 404, "UNKNOWN_AGENT")


# ------------------------------------------------------------- what can be wrong


@pytest.mark.parametrize(
    ("verb", "path", "allow"),
    [
        ("GET", "/message:send", "POST"),
        ("PUT", "/tasks", "GET"),
        ("POST", "/tasks/t", "GET"),
        ("DELETE", "/tasks/t", "GET"),
        ("GET", "/tasks/t:cancel", "POST"),
        ("PATCH", "/tasks/t:subscribe", "GET, POST"),
        ("OPTIONS", "/default/tasks", "GET"),
        ("DELETE", "/v1/tasks/t/pushNotificationConfigs", "GET, POST"),
        ("POST", "/agents/echo/v1/card", "GET"),
        ("POST", "/extendedAgentCard", "GET"),
    ],
)
def test_a_wrong_verb_is_told_the_right_one(
    client: httpx.Client, unchanged: None, verb: str, path: str, allow: str
) -> None:
    answer = client.request(verb, path)
    error = refusal(answer, 405, "INVALID_REQUEST")
    assert answer.headers["allow"] == allow
    assert (error["status"], verb in error["message"]) == ("UNIMPLEMENTED", True)


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1/nope",
        "/v1/tasks/a/b",
        "/v1/extendedAgentCard",
        "/tasks/a/b",
        "/message:nope",
        "/message:",
        "/default/message:nope",
        "/tasks/a%2Fb",
        "/tasks/a/pushNotificationConfigs/b/c",
        "/agents/echo/tasks/a/b",
        "/v1/tasks/a%0Ab/c",
        "/message:send/",
        "/v1/" + "x" * 8_000,
    ],
    ids=lambda path: path[:40],
)
def test_an_unknown_path_under_a_prefix_of_rest_is_told_in_its_shape(
    client: httpx.Client, unchanged: None, path: str
) -> None:
    if path == "/v1":
        assert client.get(path).status_code == 404
        return
    refusal(client.get(path), 404, "METHOD_NOT_FOUND")


@pytest.mark.parametrize(
    "id",
    ["x" * 36, "a%3Ab", "%C3%A9", "%ff%fe", "..", "%2e%2e", "a%20b", "%25", "x" * 5_000, "null", "t;a=b", "%e2%80%a8"],
)
def test_an_id_that_is_nobodys_is_not_found_whatever_it_looks_like(server: Server, unchanged: None, id: str) -> None:
    for verb, path in (("GET", f"/tasks/{id}"), ("POST", f"/v1/tasks/{id}:cancel"), ("GET", f"/default/tasks/{id}")):
        # Unlike others, this client sends a path as it is.
        connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request(verb, path, headers={"X-API-Key": server.owner})
        answer = connection.getresponse()
        error = json.loads(answer.read())["error"]
        assert (answer.status, error["details"][0]["reason"]) == (404, "TASK_NOT_FOUND")
        connection.close()


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/tasks?pageSize=abc", "pageSize"),
        ("/tasks?pageSize=0", "pageSize"),
        ("/tasks?pageSize=101", "pageSize"),
        ("/tasks?pageSize=", "pageSize"),
        ("/tasks?pageSize=1.5", "pageSize"),
        ("/tasks?pageSize=1&pageSize=1", "pageSize"),
        (f"/tasks?pageSize={'9' * 5000}", "pageSize"),
        ("/tasks?historyLength=-1", "historyLength"),
        ("/tasks?includeArtifacts=maybe", "includeArtifacts"),
        ("/tasks?status=done", "status"),
        ("/tasks?status=99", "status"),
        ("/tasks?statusTimestampAfter=yesterday", "statusTimestampAfter"),
        ("/tasks?pageToken=made%20up", "pageToken"),
        ("/tasks?contextId=a%00b", "contextId"),
        ("/tasks/", "id"),
        ("/tasks/t?historyLength=-1", "historyLength"),
        ("/tasks/t?historyLength=x", "historyLength"),
        ("/tasks/t?historyLength=%d9%a1", "historyLength"),
        ("/tasks/%00", "id"),
        ("/%00/tasks", "tenant"),
        ("/tasks/t?id=u", "id"),
        ("/v1/tasks?limit=abc", "limit"),
        ("/v1/tasks?limit=0", "limit"),
        ("/v1/tasks?limit=1&limit=2", "limit"),
        ("/v1/tasks?status=done", "status"),
        ("/v1/tasks?cursor=x", "cursor"),
        ("/v1/tasks/", "id"),
        ("/v1/tasks/t?historyLength=-1", "historyLength"),
        ("/v1/tasks/t?historyLength=1e-3", "historyLength"),
        ("/tasks?" + "&".join(["a=1"] * 1_100), "query"),
    ],
    ids=lambda value: value[:60],
)
def test_a_bad_member_of_a_path_or_query_is_named(client: httpx.Client, unchanged: None, path: str, field: str) -> None:
    assert fields(refusal(client.get(path), 400, "INVALID_PARAMS")) == [field]


def test_what_an_operation_refuses_is_named_as_it_was_sent(client: httpx.Client, unchanged: None) -> None:
    data = {"data": {"data": {"days": "x"}}}
    for agent, part, member in (
        ("echo", {"file": {"fileWithUri": "taskdesk-file:x"}}, "field"),
        ("pictures", {"file": {"fileWithBytes": "YQ==", "mimeType": "a/b"}}, "part"),
        ("inputs", data, ""),
    ):
        wish = sending(PROTO | {"content": [part]}, agent)
        answer = client.post("/v1/message:send", json=wish | {"configuration": {"blocking": True}})
        assert "message.content[0]" in answer.text, (member, answer.text)
        assert "message.parts" not in answer.text


def test_a_card_is_that_of_the_version_that_is_asked_for(client: httpx.Client) -> None:
    cards = {
        version: client.get("/v1/card", headers={"A2A-Version": version}).json() for version in ("0.2.9", "0.3", "")
    }
    assert cards["0.2.9"]["protocolVersion"] == "0.2.9"
    assert cards["0.3"] == cards[""]
    assert cards[""]["protocolVersion"] == "0.3.0"
    assert any("security" in skill for skill in cards[""]["skills"])
    assert not any("security" in skill for skill in cards["0.2.9"]["skills"])


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


def test_a_version_of_another_path_is_refused(client: httpx.Client, unchanged: None) -> None:
    for path, versions in {
        "/tasks/t": ("0.3", "0.2.9", "2.0", "x"),
        "/v1/tasks/t": ("1.0", "1.0.1", "0.5", "y"),
    }.items():
        for version in versions:
            refusal(client.get(path, headers={"A2A-Version": version}), 400, "VERSION_NOT_SUPPORTED")
            refusal(client.get(path, params={"A2A-Version": version}), 400, "VERSION_NOT_SUPPORTED")
    # The header is heard first.
    answer = client.get("/tasks/t?A2A-Version=0.3", headers={"A2A-Version": "1.0"})
    refusal(answer, 404, "TASK_NOT_FOUND")


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
        time.sleep(2.5)
        yield b"}"

    with httpx.Client(timeout=20, verify=NO_TLS) as client:
        answer = client.post(server.url + "/message:send", content=slowly(), headers=JSON)
    assert refusal(answer, 408, "INVALID_REQUEST")["status"] == "DEADLINE_EXCEEDED"


# ------------------------------------------------------------------------ paths


def first_segments(patterns: list[Any]) -> set[str]:
    """What our paths begin with, as far as it is fixed."""
    found = set()
    for entry in patterns:
        assert isinstance(entry, URLPattern | URLResolver)
        text = str(entry.pattern)
        if not text.startswith("^"):  # the regular expressions are those of REST
            found.add(text.split("/")[0])
    return found


def test_no_path_of_ours_can_be_a_tenant() -> None:
    assert first_segments(get_resolver().url_patterns) <= RESERVED
    assert {"v1", "tasks", "message:send", "message:stream", "extendedAgentCard", ".well-known", "jsonrpc"} <= RESERVED
    assert not LEAN & STOCK


@pytest.mark.parametrize(
    ("path", "lean"),
    [
        ("/", True),
        ("/jsonrpc", True),
        ("/tasks/t", True),
        ("/v1/tasks", True),
        ("/message:send", True),
        ("/acme/tasks", True),
        ("/acme/message:stream", True),
        ("/acme/extendedAgentCard", True),
        ("/healthz", True),
        ("/agents/echo/acme/tasks", True),
        ("*", True),
        ("", True),
        ("/admin/", False),
        ("/admin/tasks", False),
        ("/static/tasks/x", False),
        ("/acme", False),
        ("/acme/other", False),
        ("/favicon.ico", False),
    ],
)
def test_the_lean_handler_has_the_protocols_paths(path: str, lean: bool) -> None:
    assert is_lean(path) is lean
