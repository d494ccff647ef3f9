"""Calls over REST next to their answers: under the JSON-RPC name of the method, with all that was asked, equal to what
was sent."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.test import AsyncClient

from tasks_app.exchanges.responses import response_text
from tasks_app.models import Event, Exchange, Task
from tests.conftest import Person, person, until
from tests.support.draining import draining
from tests.support.exchanges import recorded

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]

Ask = Callable[..., tuple[int, bytes]]


@pytest.fixture
def ask(owner: Person) -> Ask:
    """Return status and bytes of the answer."""

    def ask(verb: str, path: str, wire: Any = None, key: str | None = owner.key, **headers: str) -> tuple[int, bytes]:
        async def call() -> tuple[int, bytes]:
            if key:
                headers["authorization"] = f"Bearer {key}"
            body = b"" if wire is None else wire if isinstance(wire, bytes) else json.dumps(wire).encode()
            response = await AsyncClient().generic(verb, path, body, "application/json", headers=headers)
            if not response.streaming:
                return response.status_code, response.content
            return response.status_code, b"".join([chunk async for chunk in response.streaming_content])

        return asyncio.run(call())

    return ask


_made = iter(range(1, 1_000_000))


def new(text: str = "hello", agent: str = "echo", task: str | None = None, **more: Any) -> dict[str, Any]:
    said = {"messageId": f"m{next(_made)}", "role": "ROLE_USER", "parts": [{"text": text}]} | (
        {"taskId": task} if task else {}
    )
    return {"message": said, "metadata": {"agent": agent}, **more}


def proto(agent: str = "echo", **more: Any) -> dict[str, Any]:
    said = {"messageId": f"m{next(_made)}", "role": "ROLE_USER", "content": [{"text": "hello"}]}
    return {"message": said, "metadata": {"agent": agent}, **more}


def kind(agent: str = "echo", **more: Any) -> dict[str, Any]:
    said = {"messageId": f"m{next(_made)}", "role": "user", "parts": [{"kind": "text", "text": "hello"}]}
    return {"message": said, "metadata": {"agent": agent}, **more}


NOW = {"configuration": {"returnImmediately": True}}
SEND, SEND_OLD = "/message:send", "/v1/message:send"


@pytest.mark.parametrize(
    ("verb", "path", "wire", "method", "dialect"),
    [
        ("POST", SEND, new(), "SendMessage", "a2a-1.0"),
        ("POST", SEND, new(agent="form-coroutine", configuration={"historyLength": 0}), "SendMessage", "a2a-1.0"),
        ("POST", SEND, new(agent="replies"), "SendMessage", "a2a-1.0"),
        ("POST", SEND, new(agent="gate", **NOW), "SendMessage", "a2a-1.0"),
        ("POST", SEND, {}, "SendMessage", "a2a-1.0"),
        ("POST", SEND, b"{", "SendMessage", ""),
        ("POST", SEND_OLD, kind("form-coroutine"), "message/send", "a2a-0.3-kind"),
        ("POST", SEND_OLD, kind("replies"), "message/send", "a2a-0.3-kind"),
        ("POST", SEND_OLD, proto("asks", configuration={"historyLength": 1}), "message/send", "a2a-0.3-proto"),
        ("POST", SEND_OLD, proto("replies"), "message/send", "a2a-0.3-proto"),
        ("POST", SEND_OLD, proto("nobody"), "message/send", "a2a-0.3-proto"),
        ("GET", "/tasks?pageSize=2", None, "ListTasks", "a2a-1.0"),
        ("GET", "/tasks?pageSize=abc", None, "ListTasks", "a2a-1.0"),
        ("GET", "/v1/tasks", None, "tasks/list", "a2a-0.3-proto"),
        ("GET", "/tasks/missing", None, "GetTask", "a2a-1.0"),
        ("POST", "/v1/tasks/missing:cancel", None, "tasks/cancel", "a2a-0.3-proto"),
        ("GET", "/tasks/missing:subscribe", None, "SubscribeToTask", "a2a-1.0"),
        ("GET", "/v1/tasks/t/pushNotificationConfigs/c", None, "tasks/pushNotificationConfig/get", "a2a-0.3-proto"),
        ("GET", "/extendedAgentCard", None, "GetExtendedAgentCard", "a2a-1.0"),
        ("GET", "/nowhere/tasks", None, "ListTasks", "a2a-1.0"),
    ],
    ids=str,
)
def test_operators_see_the_answer_that_was_sent(
    ask: Ask, verb: str, path: str, wire: Any, method: str, dialect: str
) -> None:
    status, content = ask(verb, path, wire)
    (exchange,) = recorded(1)
    assert response_text(exchange) == content.decode()
    assert (exchange.door, exchange.method, exchange.dialect) == ("rest", method, dialect)
    assert (exchange.http_status, exchange.response_bytes) == (status, len(content))
    assert (exchange.rpc_id, exchange.rpc_id_type) == (None, "absent")
    answer = json.loads(content)
    assert ("error" in answer) == (exchange.code is not None) == (status != 200)
    if isinstance(wire, dict):
        assert json.loads(exchange.body.request) == wire


def test_an_operator_sees_all_that_was_asked(ask: Ask) -> None:
    ask("GET", "/home/tasks/t%3A1?historyLength=2&unknown=hunter2")
    ask("POST", "/tasks/t2:cancel", {"metadata": {"why": "x", "token": "hunter2"}})
    one, two = recorded(2)
    assert json.loads(one.body.request) == {"tenant": "home", "id": "t:1", "historyLength": 2}
    assert json.loads(two.body.request)["id"] == "t2"
    assert json.loads(two.body.request)["metadata"]["why"] == "x"
    assert "hunter2" not in one.body.request + two.body.request


def test_later_changes_of_a_task_do_not_change_what_was_sent(ask: Ask) -> None:
    sent = [ask("POST", SEND, new(agent="gate", **NOW))[1]]
    made = json.loads(sent[0])["task"]["id"]
    until(lambda: Event.objects.filter(task_id=made, kind="artifactUpdate").exists(), "the agent is at work")
    sent.append(ask("GET", f"/tasks/{made}")[1])
    sent.append(ask("GET", f"/tasks/{made}?historyLength=0")[1])
    sent.append(ask("GET", f"/v1/tasks/{made}?historyLength=1")[1])
    sent.append(ask("POST", SEND, new("more", task=made, **NOW))[1])
    sent.append(ask("POST", f"/v1/tasks/{made}:cancel")[1])
    sent.append(ask("GET", f"/home/tasks/{made}")[1])
    found = recorded(7)
    assert [response_text(exchange) for exchange in found] == [content.decode() for content in sent]
    assert {(exchange.task_id, exchange.outcome) for exchange in found} == {(made, "result")}


@pytest.mark.parametrize(
    ("path", "wire"),
    [
        ("/message:stream", new()),
        ("/message:stream", new(agent="replies")),
        ("/message:stream", new(agent="form-generator", configuration={"historyLength": 0})),
        ("/v1/message:stream", kind("form-generator")),
        ("/v1/message:stream", proto("form-generator")),
        ("/v1/message:stream", proto("replies")),
    ],
    ids=str,
)
def test_the_frames_of_a_stream_are_shown_as_they_were_sent(ask: Ask, path: str, wire: Any) -> None:
    _, content = ask("POST", path, wire)
    frames = [line.removeprefix("data: ") for line in content.decode().split("\n") if line.startswith("data: ")]
    (exchange,) = recorded(1)
    assert response_text(exchange).split("\n") == frames
    assert (exchange.outcome, exchange.frames, exchange.code) == ("stream", len(frames), None)


def test_a_refusal_is_recorded_without_its_content(ask: Ask) -> None:
    ask("POST", SEND, new("hunter2"), key=None)
    ask("POST", SEND, b"{ hunter2", key="tdk_nobody")
    ask("POST", "/message:nope", new("hunter2"))
    ask("PUT", "/v1/tasks/t", b"hunter2")
    ask("POST", SEND, b"x" * 1_000_001)
    found = recorded(5)
    assert [exchange.http_status for exchange in found] == [401, 401, 404, 405, 413]
    asked = ["", "", "POST /message:nope", "PUT /v1/tasks/t", "POST /message:send"]
    assert [exchange.body.request for exchange in found] == asked
    for exchange in found:
        assert (exchange.outcome, exchange.door) == ("refused", "rest")
        assert "hunter2" not in exchange.body.response


def test_a_call_whose_path_query_or_version_is_wrong_is_recorded_with_them(ask: Ask) -> None:
    ask("GET", "/tasks/t1?A2A-Version=0.3&historyLength=2")
    ask("GET", "/tasks?pageSize=1&pageSize=2&access_token=hunter2")
    ask("GET", "/home/tasks/t3?tenant=acme")
    ask("POST", "/tasks/t4:cancel", {"id": "another"})
    asked = [json.loads(exchange.body.request) for exchange in recorded(4)]
    assert [one.get("id") for one in asked] == ["t1", None, "t3", "t4"]
    assert [one.get("query") for one in asked] == [
        {"A2A-Version": ["0.3"], "historyLength": ["2"]},
        {"pageSize": ["1", "2"], "access_token": "[redacted]"},
        {"tenant": ["acme"]},
        {},
    ]


def test_a_call_is_found_by_the_command_and_the_ids_that_it_brought(
    ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    _, content = ask("POST", SEND, new(), **{"x-request-id": "req-1", "traceparent": f"00-{trace}-b7ad6b7169203331-01"})
    (exchange,) = recorded(1)
    assert (exchange.request_id, exchange.trace) == ("req-1", trace)
    call_command("exchanges", json.loads(content)["task"]["id"], "--bodies")
    shown = json.loads(capsys.readouterr().out)
    assert (shown["door"], shown["method"], shown["response"]) == ("rest", "SendMessage", content.decode())


def test_a_process_that_goes_down_takes_no_new_work_and_says_when_to_ask_again(ask: Ask, owner: Person) -> None:
    made = json.loads(ask("POST", SEND, new())[1])["task"]["id"]
    with draining():
        for path, wire in ((SEND, new()), (SEND_OLD, kind()), (SEND_OLD, proto()), (f"/tasks/{made}:cancel", {})):
            status, refusal = ask("POST", path, wire)
            assert (status, json.loads(refusal)["error"]["status"]) == (503, "UNAVAILABLE")
        headers = {"authorization": f"Bearer {owner.key}"}
        answer = asyncio.run(AsyncClient().post(SEND, data=new(), content_type="application/json", headers=headers))
        assert answer["Retry-After"] == "2"
        assert ask("GET", f"/tasks/{made}")[0] == 200
    assert Task.objects.count() == 1


def test_a_key_without_the_scope_is_told_which(ask: Ask, owner: Person) -> None:
    reader = person("reader", "home", scopes="tasks:read").key
    status, content = ask("POST", SEND, new(), key=reader)
    error = json.loads(content)["error"]
    assert (status, error["status"]) == (403, "PERMISSION_DENIED")
    assert error["details"][0]["metadata"] == {"required": "tasks:write", "provided": "tasks:read"}
    assert ask("GET", "/tasks", key=reader)[0] == 200


@pytest.mark.parametrize("family", ["", "/v1"])
@pytest.mark.requirement("ZONE-06")
def test_a_fault_of_ours_is_told_by_reference_only(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, family: str
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("hunter2")

    monkeypatch.setattr("tasks_app.transports.handling.perform", fail)
    status, content = ask("GET", f"{family}/tasks/t")
    error = json.loads(content)["error"]
    assert (status, error["status"]) == (500, "INTERNAL")
    assert error["details"][0]["metadata"]["reference"] in caplog.text
    assert "hunter2" not in content.decode()
    (exchange,) = recorded(1)
    assert (exchange.code, exchange.http_status) == (-32603, 500)


def test_calls_that_the_version_before_recorded_are_derived_by_their_door(ask: Ask) -> None:
    """Their rows name no envelope."""
    _, content = ask("POST", "/message:send", new())
    Exchange.objects.update(envelope=None)
    (exchange,) = recorded(1)
    assert (exchange.door, exchange.envelope) == ("rest", None)
    assert json.loads(response_text(exchange)) == json.loads(content)
