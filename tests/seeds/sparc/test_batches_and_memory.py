"""The batch and memory examples of SPARC's text as they are printed, against a running server."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.conftest import NO_TLS, Server, until

pytestmark = pytest.mark.storage
STORE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "method": "memory/store",
    "params": {
        "namespace": "sparc",
        "key": "workflow-001-specification",
        "data": {
            "requirements": ["auth", "validation", "security"],
            "constraints": ["performance", "scalability"],
            "phase": "specification",
        },
        "ttl": 3600,
    },
    "id": "req-011",
}
EXECUTE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "method": "batchtools/execute",
    "params": {
        "operation": "parallel_analysis",
        "tasks": ["task-001", "task-002", "task-003"],
        "configuration": {"maxConcurrent": 5, "batchSize": 10, "optimization": "performance"},
    },
    "id": "req-010",
}
"""The examples of the text. The ids of tasks are filled in."""
AGENT = "/agents/form-coroutine/sparc"


class Caller:
    """A client of the text: JSON-RPC over HTTP with a bearer token."""

    def __init__(self, http: httpx.Client, url: str, key: str) -> None:
        self.http, self.url, self.headers = http, url, {"Authorization": f"Bearer {key}"}

    def post(self, body: dict[str, Any], path: str = "/sparc") -> dict[str, Any]:
        answer: dict[str, Any] = self.http.post(f"{self.url}{path}", json=body, headers=self.headers).json()
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", body["id"])
        return answer

    def ask(self, method: str, path: str = "/sparc", **params: Any) -> Any:
        return self.post({"jsonrpc": "2.0", "method": method, "params": params, "id": "req"}, path)["result"]

    def fail(self, method: str, path: str = "/sparc", **params: Any) -> Any:
        return self.post({"jsonrpc": "2.0", "method": method, "params": params, "id": "req"}, path)["error"]

    def task(self, text: str) -> str:
        message = {"role": "user", "parts": [{"kind": "text", "text": text}], "messageId": f"msg-{text}"}
        return str(self.ask("message/send", AGENT, message=message)["id"])

    def ended(self, task_id: str) -> Any:
        def look() -> Any:
            task = self.ask("tasks/get", taskId=task_id)
            return task if task["status"]["state"] in {"completed", "failed", "canceled"} else None

        return until(look, "the batch has ended")


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with httpx.Client(verify=NO_TLS, timeout=30) as http:
        yield http


@pytest.mark.requirement("SPARC-09")
def test_an_entry_is_stored_read_listed_searched_and_deleted(server: Server, http: httpx.Client) -> None:
    me, other = Caller(http, server.url, server.owner), Caller(http, server.url, server.stranger)
    entry = me.post(STORE)["result"]
    assert (entry["namespace"], entry["key"]) == ("sparc", "workflow-001-specification")
    assert entry["expiresAt"] > entry["updatedAt"]
    place = {"namespace": entry["namespace"], "key": entry["key"]}
    assert me.ask("memory/retrieve", **place)["data"] == STORE["params"]["data"]
    assert [one["key"] for one in me.ask("memory/list", namespace="sparc", prefix="workflow-")["entries"]] == [
        entry["key"]
    ]
    for conditions in ({"text": "SECURITY"}, {"field": "phase", "value": "specification"}):
        assert [one["key"] for one in me.ask("memory/search", namespace="sparc", **conditions)["entries"]] == [
            entry["key"]
        ]
    foreign = other.fail("memory/retrieve", **place)
    assert foreign["code"] == -32001
    assert me.fail("memory/store", **STORE["params"] | {"ifVersion": 7})["code"] == -32602
    assert me.ask("memory/delete", **place) == place | {"deleted": True}
    assert me.fail("memory/retrieve", **place) == foreign


@pytest.mark.requirement("SPARC-08", "SPARC-15")
def test_a_batch_has_a_result_for_each_task_in_order(server: Server, http: httpx.Client) -> None:
    me = Caller(http, server.url, server.owner)
    texts = [f"work {place}" for place in range(12)]
    tasks = [me.task(text) for text in texts]
    batch = me.post(EXECUTE | {"params": EXECUTE["params"] | {"tasks": tasks}}, AGENT)["result"]
    assert (batch["kind"], batch["status"]["state"]) == ("task", "working")
    task = me.ended(batch["id"])
    assert task["status"]["state"] == "completed"
    results = [part["data"] for part in task["artifacts"][0]["parts"]]
    assert [result["task"] for result in results] == tasks
    assert [result["output"] for result in results] == [[text] for text in texts]
    assert len({result["taskId"] for result in results}) == len(tasks)
    assert task["status"]["message"]["metadata"]["progress"] == {"total": 12, "ended": 12, "failed": 0}


@pytest.mark.requirement("SPARC-08", "SPARC-10")
def test_a_bad_item_of_a_batch_fails_alone(server: Server, http: httpx.Client) -> None:
    me = Caller(http, server.url, server.owner)
    message = {"role": "user", "parts": [{"kind": "text", "text": "hello"}], "messageId": "any"}
    batch = me.ask("batchtools/execute", operation="form-coroutine", tasks=["task-999", {"message": message}])
    results = [part["data"] for part in me.ended(batch["id"])["artifacts"][0]["parts"]]
    assert [result["state"] for result in results] == ["failed", "completed"]
    assert me.fail("batchtools/execute", operation="nothing", tasks=["task-999"])["code"] == -38005
    assert me.fail("batchtools/execute", operation="form-coroutine", tasks=[])["code"] == -32602


@pytest.mark.requirement("SPARC-08")
def test_a_canceled_batch_begins_no_more_items(server: Server, http: httpx.Client) -> None:
    me = Caller(http, server.url, server.owner)
    message = {"role": "user", "parts": [{"kind": "text", "text": "hello"}], "messageId": "any"}
    items = [{"message": message}] * 5
    batch = me.ask("batchtools/execute", operation="gate", tasks=items, configuration={"maxConcurrent": 2})

    def states() -> list[str]:
        return [task["status"]["state"] for task in me.ask("tasks/list", limit=50)["tasks"] if _is_item(task, batch)]

    until(lambda: len(states()) == 2, "two items have begun")
    assert me.ask("tasks/cancel", taskId=batch["id"])["status"]["state"] == "canceled"
    until(lambda: states() == ["canceled"] * 2, "both are canceled")


def _is_item(task: dict[str, Any], batch: dict[str, Any]) -> bool:
    return bool(task.get("metadata", {}).get("batch") == batch["id"])
