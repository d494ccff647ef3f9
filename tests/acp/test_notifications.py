"""Notifications of remote agents in ACP: the example of its document, calls, wrong params, and their exchanges."""

import json
from typing import Any

import pytest

from tasks_app.exchanges.recording import recorder
from tasks_app.models import Exchange, ExchangeBody
from tests.acp.calls import call, error_of, post
from tests.conftest import PATIENCE, Person, person

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("service"),
    pytest.mark.requirement("ACP-08"),
]
EXAMPLE = """
{
  "jsonrpc": "2.0",
  "method": "task.notification",
  "params": {
    "taskId": "task-abc123",
    "event": "STATUS_CHANGE",
    "timestamp": "2024-01-15T10:45:00Z",
    "data": {
      "taskId": "task-abc123",
      "status": "COMPLETED",
      "artifacts": [
        {
          "artifactId": "analysis-report-1",
          "name": "Q4 Sales Analysis Report",
          "description": "Comprehensive analysis of Q4 sales trends"
        }
      ]
    }
  }
}
"""
PARAMS: dict[str, Any] = json.loads(EXAMPLE)["params"]
RECEIPT = {"type": "notification", "message": "The notification has arrived"}


def exchange() -> Exchange:
    assert recorder.drain(PATIENCE)
    return Exchange.objects.get()


def test_the_example_gets_no_body_and_is_recorded(owner: Person) -> None:
    status, _, answer = post(EXAMPLE.encode(), owner.key)
    assert (status, answer) == (204, None)
    row = exchange()
    assert (row.method, row.dialect, row.outcome, row.caller_id) == (
        *("task.notification", "acp", "notified"),
        owner.caller.owner_id,
    )
    assert json.loads(ExchangeBody.objects.get(pk=row.pk).request) == json.loads(EXAMPLE)


def test_a_call_is_answered_the_same_for_every_task(owner: Person) -> None:
    status, _, answer = post(call("task.notification", PARAMS), owner.key)
    assert (status, answer) == (200, {"jsonrpc": "2.0", "id": "req-1", "result": RECEIPT})
    row = exchange()
    assert (row.outcome, row.task_id) == ("result", None)
    assert json.loads(ExchangeBody.objects.get(pk=row.pk).response) == answer
    bare = {name: value for name, value in PARAMS.items() if name != "data"}
    assert post(call("task.notification", bare), owner.key)[2] == answer


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"taskId": ""}, "taskId"),
        ({"taskId": 7}, "taskId"),
        ({"taskId": ...}, "taskId"),
        ({"event": "DONE"}, "event"),
        ({"event": ...}, "event"),
        ({"timestamp": "yesterday"}, "timestamp"),
        ({"timestamp": ...}, "timestamp"),
        ({"data": "COMPLETED"}, "data"),
    ],
)
def test_wrong_params_are_refused_with_their_field(owner: Person, change: dict[str, Any], field: str) -> None:
    params = {name: value for name, value in (PARAMS | change).items() if value is not ...}
    error = error_of("task.notification", params, owner.key)
    assert (error["code"], error["data"]["field"]) == (-32602, f"params.{field}")


def test_a_notification_needs_the_scope_to_receive_notifications(db: None) -> None:
    reader = person("reader", "home", scopes="acp:agent:identify acp:tasks:read")
    status, _, answer = post(call("task.notification", PARAMS), reader.key)
    assert (status, answer["error"]["code"]) == (403, -40008)
    assert answer["error"]["data"]["requiredScopes"] == ["acp:notifications:receive"]
    hearer = person("hearer", "home", scopes="acp:agent:identify acp:notifications:receive")
    assert post(call("task.notification", PARAMS), hearer.key)[2]["result"] == RECEIPT
