"""Each JSON example of SPARC's text, sent over HTTP and over the WebSocket of an agent, and compared with the answer.

docs/systems/sparc.md#deviations has the reason of each member of the text that is let out here.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.sync.client import ClientConnection, connect

from tests.conftest import NO_TLS, Server
from tests.seeds.examples import filled, lacks
from tests.seeds.sparc import examples
from tests.seeds.sparc.client import LIST, PHASES, SET_PHASE, WEBHOOK
from tests.seeds.sparc.conftest import PINNED

pytestmark = pytest.mark.storage
Json = dict[str, Any]
Ask = Callable[[Json], Json]
HEADERS = {"Authorization": f"Bearer {PINNED}"}
HOOK = "http://127.0.0.1:65009/webhook/a2a-notifications"
TIMES = frozenset({"result.metadata.estimatedDuration", "result.metadata.batchProcessing", "result.status.message"})
TIMES_AFTER = frozenset({"result.metadata.completionTime", "result.metadata.resourcesUsed"})


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers=HEADERS, verify=NO_TLS, timeout=60) as http:
        yield http


@pytest.fixture
def socket(server: Server) -> Iterator[ClientConnection]:
    url = f"ws://127.0.0.1:{server.port}/sparc-researcher/ws"
    with connect(url, additional_headers=HEADERS, open_timeout=60) as socket:
        yield socket


@pytest.fixture(params=["http", "websocket"])
def ask(request: pytest.FixtureRequest, http: httpx.Client) -> Ask:
    """Return a function that sends a call and returns its answer, over the door of the test."""
    if request.param == "http":
        return lambda call: over_http(http, call)
    socket: ClientConnection = request.getfixturevalue("socket")
    return lambda call: over_socket(socket, call)


def over_http(http: httpx.Client, call: Json, path: str = "/agents/sparc-researcher/jsonrpc") -> Json:
    found: Json = http.post(path, json=call).json()
    return found


def over_socket(socket: ClientConnection, call: Json) -> Json:
    socket.send(json.dumps(call))
    found: Json = json.loads(socket.recv(60))
    return found


def fresh() -> Json:
    """Return values for the places of the text that must be new: ids of messages, and the name of the workflow."""
    return {"msg-001": str(uuid4()), "msg-003": str(uuid4()), "sparc-workflow-001": str(uuid4())}


def result(ask: Ask, call: Json, places: Json) -> Json:
    """Return the result of a call, which has its id."""
    answer = ask(filled(call, places))
    assert (answer["id"], answer["jsonrpc"]) == (call["id"], "2.0")
    found: Json = answer["result"]
    return found


def task(http: httpx.Client, agent: str = "sparc-researcher") -> str:
    """Return the id of a new task of the agent, which has ended or waits for an answer."""
    sent = over_http(http, filled(examples.MESSAGE_SEND, fresh()), f"/agents/{agent}/jsonrpc")
    return str(sent["result"]["id"])


@pytest.mark.requirement("SPARC-01", "SPARC-02", "SPARC-18")
@pytest.mark.parametrize(
    "call", [examples.STANDARD, examples.MESSAGE_SEND, examples.SOCKET], ids=lambda call: call["id"]
)
def test_a_message_is_answered_with_a_task(ask: Ask, call: Json) -> None:
    answer = ask(filled(call, fresh()))
    assert answer["id"] == call["id"]
    assert lacks(answer, examples.TASK_ANSWER, besides=TIMES) == []
    assert answer["result"]["status"]["state"] == "completed"


@pytest.mark.requirement("SPARC-02")
def test_a_message_is_answered_with_a_message(http: httpx.Client) -> None:
    answer = over_http(http, filled(examples.MESSAGE_SEND, fresh()), "/agents/sparc-adviser/jsonrpc")
    assert lacks(answer, examples.MESSAGE_ANSWER) == []


@pytest.mark.requirement("SPARC-03", "SPARC-22")
def test_a_stream_has_the_events_of_the_text_and_is_found_by_its_id(http: httpx.Client) -> None:
    places, rpc_id = fresh(), f"req-{uuid4()}"
    call = filled(examples.MESSAGE_STREAM, places) | {"id": rpc_id}
    response = http.post("/agents/sparc-researcher/jsonrpc", json=call, headers={"Accept": "text/event-stream"})
    assert response.headers["Content-Type"].startswith("text/event-stream")
    assert "no-cache" in response.headers["Cache-Control"]
    assert response.headers.get("Connection", "keep-alive") == "keep-alive"
    events = events_of(response.text)
    for name, example in examples.EVENTS:
        same = [data for found, data in events if found == name]
        kind = example["result"]["kind"]
        besides = frozenset({"result.status.message"} if kind == "task" else ())
        faults = [lacks(data, example, besides=besides) for data in same]
        assert [] in faults, (name, faults, same)
    texts = [
        data["result"]["status"].get("message", {}).get("parts", [{}])[0].get("text")
        for _, data in events
        if "status" in data["result"]
    ]
    assert examples.EVENTS[0][1]["result"]["status"]["message"]["parts"][0]["text"] in texts
    assert {data["id"] for _, data in events} == {rpc_id}
    followed = http.get(f"/stream/{rpc_id}")
    assert followed.headers["Content-Type"].startswith("text/event-stream")
    ((name, data), *_) = events_of(followed.text)
    assert (name, data["id"], data["result"]["id"]) == ("task-status-update", rpc_id, events[0][1]["result"]["id"])
    missing = http.get("/stream/req-of-nobody")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, -32001)


def events_of(text: str) -> list[tuple[str, Json]]:
    found, name = [], ""
    for line in text.splitlines():
        kind, _, value = line.partition(": ")
        if kind == "event":
            name = value
        elif kind == "data":
            found.append((name, json.loads(value)))
    return found


@pytest.mark.requirement("SPARC-03", "SPARC-18")
def test_a_stream_over_websocket_has_the_same_results(socket: ClientConnection) -> None:
    socket.send(json.dumps(filled(examples.MESSAGE_STREAM, fresh())))
    frames = []
    while "method" not in (frame := json.loads(socket.recv(60))):
        frames.append(frame)
    assert frame["params"] == {"id": "req-002", "reason": "done", "resume": False}
    for _, example in examples.EVENTS:
        kind = example["result"]["kind"]
        besides = frozenset({"result.status.message"} if kind == "task" else ())
        faults = [lacks(data, example, besides=besides) for data in frames if data["result"]["kind"] == kind]
        assert [] in faults, (kind, faults)


@pytest.mark.requirement("SPARC-04", "SPARC-18")
def test_a_task_is_read_and_canceled(ask: Ask, http: httpx.Client) -> None:
    ended = task(http)
    answer = ask(filled(examples.GET, {"task-001": ended}))
    assert lacks(answer, examples.GET_ANSWER, besides=TIMES_AFTER) == []
    assert (answer["result"]["id"], answer["result"]["status"]["state"]) == (ended, "completed")
    with_question = {"task-001": task(http, "asks")}
    path = "/agents/asks/jsonrpc"
    canceled = over_http(http, filled(examples.CANCEL, with_question), path)["result"]
    assert (canceled["id"], canceled["status"]["state"]) == (with_question["task-001"], "canceled")
    assert ask(filled(examples.CANCEL, {"task-001": ended}))["error"]["code"] == -32002


@pytest.mark.requirement("SPARC-05", "SPARC-18")
def test_tasks_are_listed(ask: Ask, http: httpx.Client) -> None:
    found = result(ask, examples.TASKS_LIST, {})["tasks"]
    assert len(found) <= LIST["limit"]
    task(http)
    (ended,) = result(ask, examples.TASKS_LIST, {"working": "completed"})["tasks"][:1]
    assert ended["status"]["state"] == "completed"
    assert all(one["status"]["state"] == LIST["status"] for one in found)


@pytest.mark.requirement("SPARC-06", "SPARC-18")
def test_a_webhook_is_set_and_read(ask: Ask, http: httpx.Client) -> None:
    places = {"task-001": task(http), WEBHOOK["url"]: HOOK}
    stored = result(ask, examples.SET_WEBHOOK, places)
    found = result(ask, examples.GET_WEBHOOK, places)
    for answer in (stored, found):
        assert answer["taskId"] == places["task-001"]
        config = answer["pushNotificationConfig"]
        assert (config["url"], config["authentication"]["schemes"]) == (HOOK, ["Bearer"])


@pytest.mark.requirement("SPARC-04")
def test_a_task_is_followed_again(http: httpx.Client) -> None:
    places = {"task-001": task(http)}
    response = http.post("/agents/sparc-researcher/jsonrpc", json=filled(examples.RESUBSCRIBE, places))
    ((name, data), *_) = events_of(response.text)
    assert (name, data["id"], data["result"]["id"]) == ("task-status-update", "req-008", places["task-001"])


@pytest.mark.requirement("SPARC-07", "SPARC-18")
def test_a_phase_is_set(ask: Ask) -> None:
    places = fresh()
    for phase in PHASES[:3]:
        result(ask, examples.PHASE_SET | {"params": {"workflowId": "sparc-workflow-001", "phase": phase}}, places)
    found = result(ask, examples.PHASE_SET, places)
    assert found["workflowId"] == places["sparc-workflow-001"]
    example = SET_PHASE
    assert {name: found[name] for name in example if name != "workflowId"} == {
        name: value for name, value in example.items() if name != "workflowId"
    }


@pytest.mark.requirement("SPARC-08", "SPARC-18")
def test_a_batch_is_begun(ask: Ask, http: httpx.Client) -> None:
    found = result(ask, examples.BATCH, {name: task(http) for name in examples.BATCH["params"]["tasks"]})
    assert (found["kind"], found["metadata"]["operation"]) == ("task", "parallel_analysis")
    assert found["metadata"]["batchProcessing"] is True


@pytest.mark.requirement("SPARC-09", "SPARC-18")
def test_memory_is_stored(ask: Ask) -> None:
    found = result(ask, examples.STORE, {})
    params = examples.STORE["params"]
    assert (found["namespace"], found["key"]) == (params["namespace"], params["key"])
    read = examples.STORE | {
        "method": "memory/retrieve",
        "params": {name: params[name] for name in ("namespace", "key")},
    }
    assert result(ask, read, {})["data"] == params["data"]


@pytest.mark.requirement("SPARC-10", "SPARC-18")
@pytest.mark.parametrize(("call", "expected"), examples.ERRORS, ids=["-32600", "-32001", "-33001"])
def test_errors_are_those_of_the_text(ask: Ask, call: Json, expected: Json) -> None:
    places = fresh()
    if call["method"] == "sparc/phase/set":
        result(ask, call | {"params": call["params"] | {"phase": "specification"}}, places)
    answer = ask(filled(call, places))
    error, example = answer["error"], expected["error"]
    assert (answer["id"], error["code"], error["message"]) == (expected["id"], example["code"], example["message"])
    assert error["data"].items() >= example["data"].items()


@pytest.mark.requirement("SPARC-22")
def test_an_agent_has_five_minutes(ask: Ask) -> None:
    call = {"jsonrpc": "2.0", "method": "agent/capabilities", "params": {}, "id": "req-012"}
    assert result(ask, call, {})["taskSeconds"] == 300


@pytest.mark.requirement("SPARC-01")
def test_the_card_is_where_the_text_has_it(http: httpx.Client) -> None:
    response = http.get("/.well-known/agent.json")
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    assert {"name", "url", "version", "capabilities", "skills"} <= response.json().keys()


@pytest.mark.requirement("SPARC-20", "SPARC-21")
def test_health_and_metrics_have_the_members_of_the_text(http: httpx.Client, operator_token: str) -> None:
    json_type = {"Content-Type": "application/json"}
    health = http.get("/health", headers=json_type)
    assert (health.status_code, health.headers["Content-Type"]) == (200, "application/json")
    assert lacks(health.json(), examples.HEALTH) == []
    assert health.json()["metrics"]["activeConnections"] >= 1
    task(http)
    metrics = http.get("/metrics", headers=json_type | {"Authorization": f"Bearer {operator_token}"})
    assert (metrics.status_code, metrics.headers["Content-Type"]) == (200, "application/json")
    assert lacks(metrics.json(), examples.METRICS) == []
    assert metrics.json()["tasks"]["completed"] >= 1
    assert http.get("/metrics", headers=json_type).status_code == 401
