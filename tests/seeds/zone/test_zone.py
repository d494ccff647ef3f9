"""Each story, edge case and requirement of the JSON-RPC zone connection, by a client of its text, against a running
server."""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
import jsonschema
import pytest

from tests.conftest import NO_TLS, PATIENCE, Server, until
from tests.seeds.zone.client import ExecutionError, VerificationZone
from tests.support.desk import logged_in

pytestmark = pytest.mark.storage


@pytest.fixture
def zone(server: Server) -> Iterator[VerificationZone]:
    with httpx.Client(verify=NO_TLS, headers={"Authorization": f"Bearer {server.owner}"}, timeout=60) as http:
        yield VerificationZone(http, server.url)


def error_of(zone: VerificationZone, **params: Any) -> ExecutionError:
    with pytest.raises(ExecutionError) as error:
        zone.execute("hello", **params)
    return error.value


@pytest.mark.requirement("ZONE-01", "ZONE-02", "ZONE-09", "ZONE-15")
def test_a_task_is_executed_and_answered(zone: VerificationZone) -> None:
    result = zone.execute("hello", correlation_id="c-1", thread_ts="1.5", user_id="U1", team_id="T1", attachments=[])
    assert result == {
        "status": "success",
        "response_text": "hello",
        "correlation_id": "c-1",
        "task_id": result["task_id"],
    }


@pytest.mark.requirement("ZONE-06")
@pytest.mark.parametrize(("agent", "code"), [("sleeper", -32001), ("raises", -32603)])
def test_a_task_that_fails_is_an_error_object(zone: VerificationZone, agent: str, code: int) -> None:
    error = error_of(zone, agent=agent)
    assert error.code == code
    assert "Traceback" not in error.message


@pytest.mark.requirement("ZONE-05")
@pytest.mark.parametrize("missing", ["channel", "text", "bot_token"])
def test_a_field_that_is_missing_is_named(zone: VerificationZone, missing: str) -> None:
    params = {"channel": "C", "text": "x", "bot_token": "t"}
    del params[missing]
    with pytest.raises(ExecutionError) as error:
        zone.call("execute_task", params)
    assert error.value.code == -32602
    assert missing in error.value.message


@pytest.mark.requirement("ZONE-05")
def test_a_method_that_is_unknown_is_an_error(zone: VerificationZone) -> None:
    with pytest.raises(ExecutionError) as error:
        zone.call("execute_everything", {})
    assert error.value.code == -32601


@pytest.mark.requirement("ZONE-03", "ZONE-04")
def test_a_hundred_broken_bodies_are_answered(zone: VerificationZone) -> None:
    whole = b'{"jsonrpc":"2.0","method":"execute_task","params":{"channel":"C","text":"x","bot_token":"t"},"id":1}'
    for place in range(1, 91):
        answer = zone.post(whole[:place])
        assert (answer["id"], answer["error"]["code"]) == (None, -32700), place
    for value in (b"1", b"null", b'"x"', b"[]", b"{}", b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":1}', b"true"):
        assert zone.post(value)["error"]["code"] == -32600, value
    for silent in ("execute_task", "get_agent_card"):
        answer = zone.post(json.dumps({"jsonrpc": "2.0", "method": silent, "params": {}}).encode())
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)


@pytest.mark.requirement("ZONE-07")
@pytest.mark.parametrize(
    "rpc_id", ["1", 1, 0, -7, "", "é" * 300, "\U0001f600", "0c9e5f3a-6d1b-4b8e-9d55-7f2f1f0f9a11"], ids=repr
)
def test_an_id_comes_back_in_its_type(zone: VerificationZone, rpc_id: Any) -> None:
    assert zone.execute("hello", rpc_id)["response_text"] == "hello"


@pytest.mark.requirement("ZONE-11")
def test_long_work_is_accepted_and_polled(zone: VerificationZone) -> None:
    result = zone.execute("hello", wait=False, agent="form-coroutine")
    task = result["task_id"]
    until(lambda: zone.call("get_task", {"task_id": task})["status"] == "success", "the task is executed")
    assert zone.call("get_task", {"task_id": task})["response_text"] == "hello"


@pytest.mark.requirement("ZONE-11")
def test_a_wait_of_some_seconds_ends_with_the_outcome_or_the_time(zone: VerificationZone) -> None:
    assert zone.execute("hello", wait=PATIENCE, agent="form-coroutine")["response_text"] == "hello"
    for wait in (0, 0.01):
        assert zone.execute("hello", wait=wait, agent="waits")["status"] == "accepted"


@pytest.mark.requirement("ZONE-05", "ZONE-11")
@pytest.mark.parametrize("wait", [-1, 3601, "2", [1], {}, 1e300], ids=repr)
def test_a_wait_that_is_no_time_is_named(zone: VerificationZone, wait: Any) -> None:
    with pytest.raises(ExecutionError) as error:
        zone.execute("hello", wait=wait)
    assert error.value.code == -32602
    assert "wait" in error.value.message


@pytest.mark.requirement("ZONE-16")
def test_the_card_is_a_result(zone: VerificationZone) -> None:
    assert {skill["id"] for skill in zone.call("get_agent_card", {})["skills"]} >= {"echo"}


@pytest.mark.requirement("ZONE-12")
def test_a_thousand_calls_are_found_with_their_answers_by_their_ids(zone: VerificationZone, server: Server) -> None:
    mark = uuid4().hex
    batch = [
        {"jsonrpc": "2.0", "id": f"{mark}-{number}", "method": "get_task", "params": {"task_id": f"t{number}"}}
        for number in range(1000)
    ]
    response = zone.http.post(f"{zone.url}/jsonrpc", json=batch)
    assert [answer["id"] for answer in response.json()] == [call["id"] for call in batch]
    query = (
        "select e.rpc_id, e.outcome, b.response from tasks_app_exchange e join tasks_app_exchangebody b "  # noqa: S608
        f"on b.exchange_id = e.id where e.rpc_id like '{mark}-%'"
    )
    until(lambda: len(server.rows(query)) == 1000, "each call is recorded")
    for rpc_id, outcome, answer in server.rows(query):
        assert (outcome, json.loads(answer)["id"]) == ("error", rpc_id)


@pytest.mark.requirement("ZONE-12")
def test_an_operator_finds_a_thousand_executions_by_their_ids(zone: VerificationZone, server: Server) -> None:
    """Every fortieth is looked for on the pages of the admin, by its id: the call stands beside its own answer."""
    mark, tasks = uuid4().hex, dict[str, str]()
    for first in range(0, 1000, 100):
        batch = [
            {
                "jsonrpc": "2.0",
                "id": f"{mark}-{number}",
                "method": "execute_task",
                "params": {"channel": "C", "text": f"words {mark} {number}", "bot_token": "xoxb-1"},
            }
            for number in range(first, first + 100)
        ]
        for answer in zone.http.post(f"{zone.url}/jsonrpc", json=batch).json():
            tasks[answer["id"]] = answer["result"]["task_id"]
    assert len(tasks) == len(set(tasks.values())) == 1000
    query = f"select count(*) from tasks_app_exchange where rpc_id like '{mark}-%' and outcome <> ''"  # noqa: S608
    until(lambda: server.rows(query) == [(1000,)], "each call is recorded")
    password = (server.log.parent / "admin.password").read_text(encoding="utf-8").strip()
    with logged_in(server.url, "admin", password) as operator:
        for number in range(7, 1000, 40):
            rpc_id = f"{mark}-{number}"
            found = operator.get("/admin/tasks_app/exchange/", params={"q": rpc_id}).text
            (path,) = set(re.findall(r'"(/admin/tasks_app/exchange/[0-9a-f-]{36}/change/)', found))
            page = operator.get(path).text
            request, _, response = page.partition('id="td-response"')
            assert all(words in request for words in (rpc_id, f"words {mark} {number}&quot;")), rpc_id
            assert all(words in response for words in (rpc_id, tasks[rpc_id], f"words {mark} {number}&quot;")), rpc_id
            assert "xoxb-1" not in page


@pytest.mark.requirement("ZONE-13")
def test_no_call_is_lost_and_the_protocol_adds_little(
    zone: VerificationZone, record_property: Callable[[str, object], None]
) -> None:
    """The time of a call beside that of a send in A2A is reported, and not asserted."""
    times: dict[str, list[float]] = {"zone": [], "a2a": []}
    for number in range(40):
        start = time.perf_counter()
        assert zone.execute(f"n {number}", agent="bench")["status"] == "success"
        times["zone"].append(time.perf_counter() - start)
        message = {"messageId": uuid4().hex, "role": "ROLE_USER", "parts": [{"text": "n"}]}
        start = time.perf_counter()
        zone.call("SendMessage", {"message": message, "metadata": {"agent": "form-coroutine"}})
        times["a2a"].append(time.perf_counter() - start)
    p95 = {name: sorted(values)[37] for name, values in times.items()}
    record_property("overhead_p95_ms", round(1000 * (p95["zone"] - p95["a2a"]), 1))


@pytest.mark.requirement("ZONE-09", "ZONE-15")
def test_the_contract_is_published_as_a_schema(zone: VerificationZone) -> None:
    schema = zone.http.get(f"{zone.url}/schemas/zones/execute_task.json").json()
    call = {
        "jsonrpc": "2.0",
        "id": "1",
        "method": "execute_task",
        "params": {"channel": "C", "text": "x", "bot_token": "t"},
    }
    answer = zone.post(json.dumps(call).encode())
    jsonschema.validate(call, schema)
    jsonschema.validate(answer, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(call | {"params": {"channel": "C"}}, schema)
