"""The flows and examples of ACP's document about notifications: at a receiver of webhooks, in streams, and taken in.

The receiver verifies signatures by its own lines, in both forms that clients of ACP know.
"""

import asyncio
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.seeds.acp.client import AcpClient, AcpSocket, Json, RpcError, checked, opened, request
from tests.seeds.acp.conftest import World

pytestmark = pytest.mark.storage
NOTIFICATION = """
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
HELLO = {"role": "user", "parts": [{"type": "TextPart", "content": "hello"}]}
EVERY = ["STATUS_CHANGE", "NEW_MESSAGE", "NEW_ARTIFACT", "COMPLETED", "FAILED"]
REST = ["NEW_MESSAGE", "STATUS_CHANGE", "NEW_ARTIFACT", "COMPLETED"]
"""The events of a task after the answer to its question."""
SECRET = "whsec_" + "B" * 32


class Receiver(ThreadingHTTPServer):
    """A receiver of notifications. Each is verified before it is read."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hear)
        self.heard: list[Json] = []
        self.secrets: dict[str, str] = {}
        """The secrets of addresses that have one, by their paths."""

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def at(self, path: str) -> list[Json]:
        return [wire for wire in self.heard if wire["path"] == path]

    def until_completed(self, path: str) -> list[Json]:
        """Return the notifications at an address, up to the end of the task."""
        deadline = time.monotonic() + 60
        while not any(wire["params"]["event"] == "COMPLETED" for wire in self.at(path)):
            assert time.monotonic() < deadline, self.heard
            time.sleep(0.02)
        return self.at(path)


class _Hear(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_good = self.headers["Content-Type"] == "application/json"
        if secret := self.server.secrets.get(self.path):
            digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
            is_good &= hmac.compare_digest(self.headers["x-acp-signature"], digest)
            is_good &= hmac.compare_digest(self.headers["X-Webhook-Signature"], f"sha256={digest}")
        if is_good:
            self.server.heard.append(json.loads(body) | {"path": self.path})
        self.send_response(204 if is_good else 400)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def there() -> Iterator[Receiver]:
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


def asked(agent: AcpClient) -> str:
    """Return the id of a task whose agent has asked a question."""
    task_id: str = agent.task("tasks.create", {"initialMessage": HELLO, "assignTo": "asks"})["taskId"]
    agent.settled(task_id, "INPUT_REQUIRED")
    return task_id


def params_of(wire: Json) -> Json:
    """Return the params of a notification once it has the form of the document's example."""
    example = json.loads(NOTIFICATION)
    assert set(wire) - {"path"} == set(example)
    assert (wire["jsonrpc"], wire["method"]) == (example["jsonrpc"], example["method"])
    params: Json = wire["params"]
    assert set(params) - {"sequence"} == set(example["params"])
    assert datetime.fromisoformat(params["timestamp"]).tzinfo
    return params


def events_of(wires: list[Json]) -> list[str]:
    return [params_of(wire)["event"] for wire in wires]


def refusal(agent: AcpClient, params: Json) -> RpcError:
    with pytest.raises(RpcError) as caught:
        agent.call("tasks.subscribe", params)
    return caught.value


@pytest.mark.requirement("ACP-06", "ACP-08", "ACP-23")
def test_an_address_hears_of_the_events_of_its_subscription(agent: AcpClient, there: Receiver) -> None:
    task_id = asked(agent)
    there.secrets["/default"] = SECRET
    for path, more in (("/default", {"secret": SECRET}), ("/chosen", {"events": ["NEW_ARTIFACT", "COMPLETED"]})):
        result = agent.call("tasks.subscribe", {"taskId": task_id, "callbackUrl": there.url(path)} | more)
        assert result["type"] == "subscription"
        subscription = result["subscription"]
        assert (subscription["taskId"], subscription["callbackUrl"]) == (task_id, there.url(path))
        assert subscription["events"] == more.get("events", ["STATUS_CHANGE", "COMPLETED", "FAILED"])
        assert subscription["active"] is True
        assert subscription["subscriptionId"]
    agent.task("tasks.send", {"taskId": task_id, "message": HELLO})
    default, chosen = (there.until_completed(path) for path in ("/default", "/chosen"))
    assert set(events_of(default)) == {"STATUS_CHANGE", "COMPLETED"}
    assert events_of(chosen) == ["NEW_ARTIFACT", "COMPLETED"]
    end = params_of(default[-1])
    assert end["event"] == "COMPLETED"
    assert end["data"] == agent.task("tasks.get", {"taskId": task_id})
    assert {"artifactId", "name"} <= set(end["data"]["artifacts"][0])
    assert params_of(chosen[0])["data"]["parts"][0]["type"] == "TextPart"


@pytest.mark.requirement("ACP-10", "ACP-11")
def test_a_subscription_that_cannot_be_is_refused(agent: AcpClient, there: Receiver) -> None:
    task_id = asked(agent)
    for address in ("", "here", "ftp://agent.example/", "http://user:word@agent.example/"):
        error = refusal(agent, {"taskId": task_id, "callbackUrl": address})
        assert (error.code, error.data["field"]) == (-32602, "params.callbackUrl")
    for events in ([], ["DONE"], "FAILED"):
        error = refusal(agent, {"taskId": task_id, "callbackUrl": there.url("/"), "events": events})
        assert error.code == -32602
        assert error.data["field"].startswith("params.events")
    unknown = refusal(agent, {"taskId": "nonexistent-task", "callbackUrl": there.url("/")})
    assert (unknown.code, unknown.message) == (-40001, "Task not found")
    assert unknown.data["suggestion"]


@contextmanager
def following(agent: AcpClient, params: Json, **headers: str) -> Iterator[Iterator[Json]]:
    """Yield the frames of a stream over HTTP. The id of each event is its sequence."""
    headers |= {"Authorization": f"Bearer {agent.token()}", "Accept": "application/json, text/event-stream"}
    wire = request("tasks.subscribe", params, "req-follow")
    with agent.http.stream("POST", f"{agent.base}/jsonrpc", json=wire, headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield (json.loads(line[5:]) for line in response.iter_lines() if line.startswith("data:"))


@pytest.mark.requirement("ACP-08")
def test_a_stream_over_http_goes_on_where_it_ended(agent: AcpClient) -> None:
    task_id = asked(agent)
    params = {"taskId": task_id, "events": EVERY}
    with following(agent, params) as stream:
        first = checked(next(stream))
        assert (first["id"], first["result"]["type"]) == ("req-follow", "task")
        assert first["result"]["task"]["status"] == "INPUT_REQUIRED"
        agent.task("tasks.send", {"taskId": task_id, "message": HELLO})
        live = list(stream)
    assert events_of(live) == REST
    cursor = live[1]["params"]["sequence"]
    with following(agent, params, **{"Last-Event-ID": str(cursor)}) as stream:
        assert checked(next(stream))["result"]["task"]["taskId"] == task_id
        assert list(stream) == live[2:]


async def notified(socket: AcpSocket) -> list[Json]:
    """Return the notifications of a connection, up to the end of the task."""
    for _ in range(3_000):
        found = [wire for wire in socket.notifications if wire["method"] == "task.notification"]
        if found and found[-1]["params"]["event"] == "COMPLETED":
            return found
        await asyncio.sleep(0.02)
    raise AssertionError("the end is not notified")


@pytest.mark.requirement("ACP-08", "ACP-16")
def test_a_stream_over_a_websocket_goes_on_where_it_ended(agent: AcpClient) -> None:
    async def flow() -> None:
        task_id = await asyncio.to_thread(asked, agent)
        params = {"taskId": task_id, "events": EVERY}
        async with opened(agent) as socket:
            first = await socket.call("tasks.subscribe", params)
            assert (first["type"], first["task"]["status"]) == ("task", "INPUT_REQUIRED")
            await socket.call("tasks.send", {"taskId": task_id, "message": HELLO})
            live = await notified(socket)
            assert events_of(live) == REST
        async with opened(agent) as socket:
            after = live[1]["params"]["sequence"]
            assert (await socket.call("tasks.subscribe", params | {"afterSequence": after}))["type"] == "task"
            assert await notified(socket) == live[2:]

    asyncio.run(flow())


@pytest.mark.requirement("ACP-05", "ACP-08")
def test_the_example_of_a_notification_is_taken_in(world: World, agent: AcpClient) -> None:
    wire = json.loads(NOTIFICATION)
    answer = agent.post(wire)
    assert (answer.status_code, answer.content) == (204, b"")
    result = agent.call(wire["method"], wire["params"])
    assert (result["type"], set(result)) == ("notification", {"type", "message"})
    refused = world.agents["agent-reader"].post(wire | {"id": "req-7"})
    error = checked(refused.json())["error"]
    assert (refused.status_code, error["code"]) == (403, -40008)
    assert error["data"]["requiredScopes"] == ["acp:notifications:receive"]
    for member in ("taskId", "event", "timestamp"):
        params = {name: value for name, value in wire["params"].items() if name != member}
        error = checked(agent.post(request(wire["method"], params)).json())["error"]
        assert (error["code"], error["data"]["field"]) == (-32602, f"params.{member}")


@pytest.mark.requirement("ACP-10", "ACP-21")
def test_a_task_names_its_agent_and_its_priority(agent: AcpClient) -> None:
    params = {"initialMessage": HELLO, "priority": "HIGH"}
    with pytest.raises(RpcError) as caught:
        agent.call("tasks.create", params | {"assignTo": "data-analysis-agent"})
    assert (caught.value.code, caught.value.message) == (-40005, "Agent not available")
    for priority in ("LOW", "NORMAL", "HIGH", "URGENT"):
        task = agent.task("tasks.create", params | {"assignTo": "echo", "priority": priority})
        assert (task["status"], task["assignedAgent"]) == ("SUBMITTED", "echo")
    with pytest.raises(RpcError) as caught:
        agent.call("tasks.create", params | {"priority": "SOON"})
    assert (caught.value.code, caught.value.data["field"]) == (-32602, "params.priority")
