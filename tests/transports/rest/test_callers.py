"""Callers of REST: keys, tenants, agents."""

import httpx
import pytest

from tests.conftest import NO_TLS, Server
from tests.transports.rest.calls import KIND, PLAIN, PROTO, fields, refusal, sending

pytestmark = pytest.mark.storage


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
