"""Every route of REST, at the root, for a tenant and for an agent."""

import json
from typing import Any

import httpx
import pytest

from tests.conftest import Server
from tests.support.doors import LiveDoor
from tests.support.rpc_speakers import NewSpeaker
from tests.transports.rest.calls import HOOK, KIND, PLAIN, PROTO, refusal, sending

pytestmark = pytest.mark.storage


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
    assert "history" in got
    assert "history" not in client.get(f"{base}/tasks/{task['id']}?historyLength=0").json()
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


def test_a_card_is_that_of_the_version_that_is_asked_for(client: httpx.Client) -> None:
    cards = {
        version: client.get("/v1/card", headers={"A2A-Version": version}).json() for version in ("0.2.9", "0.3", "")
    }
    assert cards["0.2.9"]["protocolVersion"] == "0.2.9"
    assert cards["0.3"] == cards[""]
    assert cards[""]["protocolVersion"] == "0.3.0"
    assert any("security" in skill for skill in cards[""]["skills"])
    assert not any("security" in skill for skill in cards["0.2.9"]["skills"])
