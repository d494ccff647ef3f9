"""Refusals of REST: verbs, paths and queries that are wrong."""

import json
from http.client import HTTPConnection

import httpx
import pytest

from tests.conftest import Server
from tests.transports.rest.calls import PROTO, fields, refusal, sending

pytestmark = pytest.mark.storage


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
        # This client sends a path as it is. Others change it.
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


def test_a_refusal_of_an_operation_names_the_field_as_it_was_sent(client: httpx.Client, unchanged: None) -> None:
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


def test_a_version_of_another_path_is_refused(client: httpx.Client, unchanged: None) -> None:
    for path, versions in {
        "/tasks/t": ("0.3", "0.2.9", "2.0", "x"),
        "/v1/tasks/t": ("1.0", "1.0.1", "0.5", "y"),
    }.items():
        for version in versions:
            refusal(client.get(path, headers={"A2A-Version": version}), 400, "VERSION_NOT_SUPPORTED")
            refusal(client.get(path, params={"A2A-Version": version}), 400, "VERSION_NOT_SUPPORTED")
    # The header wins over the query.
    answer = client.get("/tasks/t?A2A-Version=0.3", headers={"A2A-Version": "1.0"})
    refusal(answer, 404, "TASK_NOT_FOUND")
