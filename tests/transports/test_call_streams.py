"""The stream of a call by its id, at /stream/ID."""

import asyncio
import json
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest

from tasks_app.asgi.handler import LeanHandler
from tasks_app.exchanges import lookup
from tasks_app.exchanges.recording import recorder
from tasks_app.limits.rate_limits import limits
from tasks_app.limits.rates import Rate
from tasks_app.models import Exchange
from tasks_app.transports import call_streams
from tests.conftest import NO_TLS, PATIENCE, Person, person

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.storage,
    pytest.mark.usefixtures("service"),
    pytest.mark.requirement("SPARC-22"),
]
Json = dict[str, Any]


async def called(method: str, path: str, key: str, **more: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    transport = httpx.ASGITransport(app=LeanHandler())
    async with (
        asyncio.timeout(PATIENCE),
        httpx.AsyncClient(transport=transport, base_url="http://testserver", verify=NO_TLS) as client,
    ):
        return await client.request(method, path, headers=headers | more.pop("headers", {}), **more)


def call(method: str, path: str, key: str, **more: Any) -> httpx.Response:
    return asyncio.run(called(method, path, key, **more))


def sent(who: Person, rpc_id: Any, *, method: str = "message/send", agent: str = "echo", **headers: str) -> Json:
    message = {"role": "user", "parts": [{"kind": "text", "text": "hi"}], "messageId": str(uuid4())}
    params = {"message": message, "metadata": {"agent": agent}}
    wire = {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params}
    answer = call("POST", "/sparc", who.key, json=wire, headers=headers)
    assert recorder.drain(PATIENCE)
    found: Json = answer.json()["result"] | {"requestId": answer.headers["x-request-id"]}
    return found


def events(answer: httpx.Response) -> list[tuple[str, Json]]:
    """Return the name and the data of each event."""
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream"), answer.text
    blocks = [
        dict(line.split(": ", 1) for line in block.splitlines() if line and line[0] != ":")
        for block in answer.text.split("\n\n")
    ]
    return [(block["event"], json.loads(block["data"])) for block in blocks if "data" in block]


def refusal(answer: httpx.Response, status: int = 404) -> Json:
    assert answer.status_code == status, answer.text
    error: Json = answer.json()["error"]
    return error


def stream(who: Person, call_id: Any, place: str = "", **more: Any) -> httpx.Response:
    return call("GET", f"{place}/stream/{quote(str(call_id), safe='')}", who.key, **more)


@pytest.mark.parametrize("rpc_id", ["req-002", 7, "7", "a b/é"], ids=repr)
def test_the_id_of_a_call_leads_to_the_stream_of_its_task(owner: Person, rpc_id: Any) -> None:
    task = sent(owner, rpc_id)
    ((name, data),) = events(stream(owner, rpc_id))
    assert name == "task-status-update"
    assert (data["id"], type(data["id"])) == (rpc_id, type(rpc_id))
    assert (data["result"]["id"], data["result"]["kind"]) == (task["id"], "task")


def test_the_request_ids_of_the_caller_and_of_the_answer_lead_there_too(owner: Person) -> None:
    task, named = sent(owner, "req-1"), sent(owner, "req-2", **{"X-Request-ID": "of-the-caller"})
    for call_id, sending in ((task["requestId"], task), ("of-the-caller", named)):
        ((_, data),) = events(stream(owner, call_id))
        assert data["result"]["id"] == sending["id"]


def test_a_call_is_followed_to_its_end_and_from_where_a_client_was(owner: Person) -> None:
    sent(owner, "req-1", method="tasks/submit", agent="asks")
    found = [data["result"]["status"]["state"] for _, data in events(stream(owner, "req-1"))]
    assert found[-1] == "input-required"
    again = events(stream(owner, "req-1", headers={"Last-Event-ID": "1"}))
    assert [name for name, _ in again] == ["task-status-update", *["status-update"] * (len(again) - 1)]
    states = [data["result"]["status"]["state"] for _, data in again]
    assert (states[0], states[-1], again[-1][1]["result"]["final"]) == ("submitted", "input-required", True)


def test_the_newer_one_of_two_calls_with_an_id_is_followed(owner: Person) -> None:
    sent(owner, "req-1")
    second = sent(person("owner", "home"), "req-1", agent="asks")
    ((_, data),) = events(stream(owner, "req-1"))
    assert data["result"]["id"] == second["id"]


def test_another_id_and_the_id_of_another_caller_get_the_same_answer(owner: Person) -> None:
    sent(owner, "req-1")
    for who in (person("colleague", "home"), person("stranger", "elsewhere")):
        foreign, missing = stream(who, "req-1"), stream(who, "req-9")
        assert (foreign.status_code, missing.status_code) == (404, 404)
        assert refusal(foreign) | {"data": 0} == refusal(missing) | {"data": 0}
        error = refusal(foreign)
        assert (error["code"], error["message"]) == (-32001, "TaskNotFoundError")
        assert "no call of yours has this id" in error["data"]["details"]
        assert foreign.json()["id"] == error["data"]["requestId"] == "req-1"


@pytest.mark.parametrize("call_id", ["\0", "x" * 256, "'", "%"], ids=repr)
def test_an_id_that_no_call_can_have_is_not_found(owner: Person, call_id: str) -> None:
    assert refusal(stream(owner, call_id))["code"] == -32001


def test_a_refused_call_and_one_without_a_task_have_no_stream(owner: Person) -> None:
    wire = {"jsonrpc": "2.0", "id": "req-bad", "method": "tasks/get", "params": {"taskId": "task-999"}}
    call("POST", "/sparc", owner.key, json=wire)
    sent(owner, "req-reply", agent="replies")
    assert "no call of yours" in refusal(stream(owner, "req-bad"))["data"]["details"]
    assert "without a task" in refusal(stream(owner, "req-reply"))["data"]["details"]


def test_the_address_of_an_agent_has_its_calls_alone(owner: Person) -> None:
    sent(owner, "req-1")
    assert events(stream(owner, "req-1", "/agents/echo"))
    assert refusal(stream(owner, "req-1", "/agents/asks"))["code"] == -32001


def test_without_a_key_or_the_right_there_is_nothing(owner: Person) -> None:
    sent(owner, "req-1")
    without = call("GET", "/stream/req-1", "")
    assert (refusal(without, 401)["code"], "www-authenticate" in without.headers) == (-38009, True)
    writer = person("owner", "home", "tasks:write")
    assert stream(writer, "req-1").json()["error"] == stream(writer, "req-9").json()["error"] | {
        "data": stream(writer, "req-1").json()["error"]["data"]
    }
    assert stream(writer, "req-1").json()["error"]["code"] == -38010
    assert call("POST", "/stream/req-1", owner.key).headers["allow"] == "GET"


def test_only_the_newest_calls_with_an_id_are_looked_at(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id such as 1 may be that of very many calls of others, which a look-up must not read."""
    monkeypatch.setattr(lookup, "WINDOW", 2)
    sent(owner, 1)
    sent(person("stranger", "elsewhere"), 1)
    assert events(stream(owner, 1))
    sent(person("stranger", "elsewhere"), 1, agent="asks")
    assert refusal(stream(owner, 1))["code"] == -32001


def test_the_record_of_following_has_the_task_and_its_method(owner: Person) -> None:
    task = sent(owner, "req-1")
    stream(owner, "req-1")
    assert recorder.drain(PATIENCE)
    row = Exchange.objects.get(method="tasks/resubscribe")
    assert (row.task_id, row.rpc_id, row.dialect, row.outcome) == (task["id"], None, "sparc", "stream")


def test_a_caller_beyond_its_limit_has_no_calls_searched(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the owner a bucket for two streams that does not fill: each search costs as much, with its stream."""
    sent(owner, "req-1")
    searches: list[str] = []

    def search(owner_id: int, call_id: str) -> lookup.OwnCall | None:
        searches.append(call_id)
        return lookup.find_own_call(owner_id, call_id)

    monkeypatch.setattr(call_streams, "find_own_call", search)
    monkeypatch.setitem(limits.rules, ("caller", owner.caller.owner_id), Rate(0.001, 10))
    limits.forget()
    assert events(stream(owner, "req-1"))
    refusal(stream(owner, "none"))
    for call_id in ("req-1", "none"):
        refusal(stream(owner, call_id), 429)
    assert searches == ["req-1", "none"]
    limits.forget()
