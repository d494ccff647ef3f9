"""Every flow and error of SPARC's text by a client of that text, against a running server."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.conftest import NO_TLS, Server, until
from tests.seeds.sparc.client import LIST, PHASES, SEND, SET_PHASE, STREAM, WEBHOOK, Refused, SparcClient
from tests.seeds.sparc.conftest import PINNED

pytestmark = pytest.mark.storage
Json = dict[str, Any]


@pytest.fixture
def client(server: Server) -> Iterator[SparcClient]:
    headers = {"Authorization": f"Bearer {PINNED}"}
    with httpx.Client(base_url=server.url, headers=headers, verify=NO_TLS, timeout=60) as http:
        yield SparcClient(http)


def fresh(params: Json, workflow: str = "") -> Json:
    """Return the params of a send of the text under a new message id, in a workflow of a new name."""
    metadata = params.get("metadata", {}) | ({"workflowId": workflow} if workflow else {})
    return params | {"message": params["message"] | {"messageId": str(uuid4())}, "metadata": metadata}


def task_of(client: SparcClient) -> Json:
    result: Json = client.call("message/send", fresh(SEND, str(uuid4())))
    return result


@pytest.mark.requirement("SPARC-01", "SPARC-02", "SPARC-04")
def test_a_message_gets_a_task_and_one_to_a_quick_agent_a_message(client: SparcClient) -> None:
    task = task_of(client)
    assert (task["kind"], task["status"]["state"]) == ("task", "completed")
    assert task["metadata"]["sparcPhase"] == "specification"
    assert task["metadata"]["batchtoolsOptimized"] is True
    assert client.call("tasks/get", {"taskId": task["id"]})["artifacts"] == task["artifacts"]
    reply = client.call("message/send", fresh(STREAM | {"configuration": {}}) | {"metadata": {"agent": "replies"}})
    assert (reply["kind"], reply["parts"][0]["kind"]) == ("message", "text")


@pytest.mark.requirement("SPARC-03", "SPARC-04")
def test_a_stream_has_events_with_names_and_is_not_cached(client: SparcClient) -> None:
    headers, events = client.stream("message/stream", fresh(STREAM))
    assert headers["Content-Type"].startswith("text/event-stream")
    assert "no-cache" in headers["Cache-Control"]
    names = [name for name, _ in events]
    assert (names[0], names[-1]) == ("task-status-update", "status-update")
    assert set(names) <= {"task-status-update", "status-update", "artifact-update"}
    assert events[0][1]["kind"] == "task"
    assert events[-1][1]["final"] is True
    _, again = client.stream("tasks/resubscribe", {"taskId": events[0][1]["id"]})
    assert (again[0][0], again[0][1]["id"]) == ("task-status-update", events[0][1]["id"])


@pytest.mark.requirement("SPARC-05")
def test_tasks_are_listed_by_state_up_to_a_limit(client: SparcClient) -> None:
    task = task_of(client)
    found = client.call("tasks/list", LIST | {"status": "completed", "limit": 1})
    assert [one["id"] for one in found["tasks"]] == [task["id"]]
    assert all(one["status"]["state"] == "working" for one in client.call("tasks/list", LIST)["tasks"])


@pytest.mark.requirement("SPARC-06")
def test_a_webhook_is_set_and_read(client: SparcClient) -> None:
    task = task_of(client)
    config = WEBHOOK | {"url": "http://127.0.0.1:65009/webhook/a2a-notifications"}
    stored = client.call("tasks/pushNotificationConfig/set", {"taskId": task["id"], "config": config})
    assert stored["taskId"] == task["id"]
    found = client.call("tasks/pushNotificationConfig/get", {"taskId": task["id"]})
    for name in ("id", "url", "authentication"):
        assert found["pushNotificationConfig"][name] == stored["pushNotificationConfig"][name]


@pytest.mark.requirement("SPARC-10")
def test_errors_have_their_name_and_data(client: SparcClient) -> None:
    with pytest.raises(Refused) as missing:
        client.call("tasks/get", {"taskId": "task-999"})
    assert (missing.value.code, missing.value.message) == (-32001, "TaskNotFoundError")
    assert missing.value.data["taskId"] == "task-999"
    assert missing.value.data["details"] == "Task not found or expired"
    with pytest.raises(Refused) as empty:
        client.call("message/send", {})
    assert (empty.value.code, empty.value.message) == (-32600, "Invalid Request")
    assert empty.value.data["details"] == "Missing required 'message' parameter"
    task = task_of(client)
    with pytest.raises(Refused) as ended:
        client.call("tasks/cancel", {"taskId": task["id"]})
    assert (ended.value.code, ended.value.message) == (-32002, "TaskNotCancelableError")


@pytest.mark.requirement("SPARC-07")
def test_phases_are_set_in_their_order(client: SparcClient) -> None:
    workflow = {"workflowId": str(uuid4())}
    assert client.call("sparc/phase/set", workflow | {"phase": "specification"})["phase"] == "specification"
    with pytest.raises(Refused) as skip:
        client.call("sparc/phase/set", workflow | {"phase": "completion"})
    assert (skip.value.code, skip.value.message) == (-33001, "SPARCPhaseError")
    expected = {"currentPhase": "specification", "requestedPhase": "completion"}
    assert skip.value.data.items() >= (expected | {"details": "Cannot skip intermediate phases"}).items()
    for phase in PHASES[1:3]:
        client.call("sparc/phase/set", workflow | {"phase": phase})
    found = client.call("sparc/phase/set", SET_PHASE | workflow)
    assert (found["phase"], found["agentTypes"], found["configuration"]) == (
        "refinement",
        SET_PHASE["agentTypes"],
        SET_PHASE["configuration"],
    )


@pytest.mark.requirement("SPARC-17", "SPARC-22")
def test_an_execution_gives_each_phase_one_result(client: SparcClient) -> None:
    workflow = {"workflowId": str(uuid4())}
    client.call("sparc/execute", workflow | {"message": fresh(SEND)["message"]})

    def completed() -> Json | None:
        found: Json = client.call("sparc/workflow/get", workflow)
        return found if found["state"] == "completed" else None

    found = until(completed, "the workflow is completed")
    assert [(one["phase"], one["state"], len(one["tasks"])) for one in found["phases"]] == [
        (phase, "completed", 1) for phase in PHASES
    ]
    assert found["phases"][4]["result"]["artifacts"][0]["parts"][0]["text"] == "completion after 4"
    assert (found["metrics"]["tasksTotal"], found["metrics"]["tasksActive"]) == (5, 0)


@pytest.mark.requirement("SPARC-11")
def test_a_caller_sends_its_key_in_either_header_and_none_gets_nothing(server: Server) -> None:
    headers = {"X-API-Key": PINNED}
    with httpx.Client(base_url=server.url, headers=headers, verify=NO_TLS, timeout=60) as http:
        assert task_of(SparcClient(http))["kind"] == "task"
    with httpx.Client(base_url=server.url, verify=NO_TLS, timeout=60) as http:
        assert http.post("/sparc", json=SparcClient(http).body("tasks/get", {"taskId": "x"})).status_code == 401


@pytest.mark.requirement("SPARC-01", "SPARC-22")
def test_a_key_without_a_pin_has_the_language_at_its_path_and_by_its_methods(server: Server) -> None:
    headers = {"Authorization": f"Bearer {server.owner}"}
    with httpx.Client(base_url=server.url, headers=headers, verify=NO_TLS, timeout=60) as http:
        assert http.get("/.well-known/agent.json").status_code == 200
        here = SparcClient(http, "/sparc")
        task = here.call("tasks/submit", fresh(SEND, str(uuid4())))
        assert (task["kind"], task["status"]["state"]) == ("task", "submitted")
        found = SparcClient(http).call("agent/capabilities", {})
        assert found["phases"] == list(PHASES)
        foreign = SparcClient(http, "/agents/builder/sparc")
        with pytest.raises(Refused) as refusal:
            foreign.call("tasks/get", {"taskId": task["id"]})
        assert refusal.value.code == -32001
