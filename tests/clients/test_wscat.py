"""An independent WebSocket client, the command wscat, used as docs/websocket.md describes the door."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.clients.environments import missing_node, wscat
from tests.faults.nodes import KEY, Node
from tests.support.workers import NOT_TRIED

pytestmark = pytest.mark.clients
Frames = Iterator[dict[str, Any]]


@pytest.fixture(scope="module")
def command(pytestconfig: pytest.Config) -> list[str]:
    if why := missing_node():
        pytest.skip(f"{NOT_TRIED}: the command wscat: {why}")
    assert pytestconfig.cache
    return wscat(pytestconfig.cache.mkdir("clients"))


@contextmanager
def connected(command: list[str], node: Node, *frames: dict[str, Any]) -> Iterator[Frames]:
    """Send frames over a new connection to the agent `gate`, and give the frames that come."""
    url = node.base.replace("http", "ws", 1) + "/agents/gate/ws"
    line = [*command, "--no-color", "--connect", url, "--header", f"Authorization: Bearer {KEY}", "--wait", "-1"]
    for frame in frames:
        version = {"A2A-Version": "1.0"} | frame.pop("parameters", {})
        line += ["--execute", json.dumps({"jsonrpc": "2.0", **frame, "a2a-service-parameters": version})]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield map(json.loads, process.stdout)
        finally:
            process.kill()


def message(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"messageId": name, "role": "ROLE_USER", "parts": [{"text": text}], **more}


def subscription(task_id: str, last: int) -> dict[str, Any]:
    params = {"id": task_id}
    return {"id": "r", "method": "SubscribeToTask", "params": params, "parameters": {"afterSequence": last}}


def stream_of(frames: Frames) -> list[dict[str, Any]]:
    """Return the events of a subscription, whose last frame says that it is done."""
    events = []
    for frame in frames:
        if frame.get("method") == "stream/end":
            assert frame["params"] == {"id": "r", "reason": "done", "resume": False}
            return events
        if frame["id"] == "r":
            events.append(frame)
    raise AssertionError("the connection ended before the stream")


def test_a_task_is_followed_over_a_lost_connection_with_each_event_once(command: list[str], conformance: Node) -> None:
    begin = {"id": "s", "method": "SendStreamingMessage", "params": {"message": message("w-1", "Hello")}}
    seen: list[dict[str, Any]] = []
    with connected(command, conformance, begin) as frames:
        for frame in frames:
            seen.append(frame)
            if "artifactUpdate" in frame["result"]:
                break
    task_id, last = seen[0]["result"]["task"]["id"], seen[-1]["sequence"]

    stop = {"id": 1, "method": "SendMessage", "params": {"message": message("w-2", "stop", taskId=task_id)}}
    with connected(command, conformance, subscription(task_id, last), stop) as frames:
        resumed = stream_of(frames)
    assert (resumed[0]["sequence"], set(resumed[0]["result"])) == (last, {"task"})
    events = [*seen, *resumed[1:]]
    assert events[-1]["result"]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    chunks = [frame["result"]["artifactUpdate"]["artifact"] for frame in events if "artifactUpdate" in frame["result"]]
    assert "".join(part["text"] for chunk in chunks for part in chunk["parts"]) == "begin end"
    # The whole task again, over a connection that lasts.
    with connected(command, conformance, subscription(task_id, 1)) as frames:
        whole = stream_of(frames)
    assert [frame["sequence"] for frame in events] == [frame["sequence"] for frame in whole]
