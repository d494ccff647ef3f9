"""``python -m tests.faults.bystander PORT KEY SECONDS``: a caller who measures while others load the server.

It is a process of its own, so that its figures contain no waiting behind the load in the test's own event loop.
"""

import asyncio
import http.client
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.faults.clients import HEADERS, envelope, inputs
from tests.faults.nodes import ROOT, Node

PAUSE = 0.01
"""Seconds between two calls."""


class Bystander:
    """Asks on one connection that stays open."""

    def __init__(self, port: int, key: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = HEADERS | {"Authorization": f"Bearer {key}"}

    def call(self, method: str, params: dict[str, Any]) -> Any:
        self.connection.request("POST", "/jsonrpc", envelope(method, params), self.headers)
        return json.loads(self.connection.getresponse().read())["result"]

    def send(self) -> str:
        """Send a message to an agent that answers inside the call; return the id of its task."""
        params = {"message": inputs(word="hello"), "metadata": {"agent": "echo"}}
        task_id: str = self.call("SendMessage", params)["task"]["id"]
        return task_id

    def ready(self) -> None:
        self.connection.request("GET", "/readyz")
        answer = self.connection.getresponse()
        answer.read()
        assert answer.status == 200

    def watch(self, seconds: float) -> dict[str, list[float]]:
        """Return how many seconds each call took, by kind."""
        task_id = self.send()
        acts: dict[str, Callable[[], object]] = {
            "get": lambda: self.call("GetTask", {"id": task_id}),
            "send": self.send,
            "list": lambda: self.call("ListTasks", {"pageSize": 10}),
            "readyz": self.ready,
        }
        times: dict[str, list[float]] = {name: [] for name in acts}
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for name, act in acts.items():
                since = time.perf_counter()
                act()
                times[name].append(time.perf_counter() - since)
                time.sleep(PAUSE)
        return times


async def bystand(node: Node, key: str, seconds: float) -> dict[str, list[float]]:
    """Return how many seconds each call of a bystander took, by kind."""
    command = [sys.executable, "-m", "tests.faults.bystander", str(node.port), key, str(seconds)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    times: dict[str, list[float]] = json.loads(output)
    assert all(times.values()), times
    return times


def percentiles(times: list[float]) -> str:
    """Return the median and the 99th percentile in milliseconds."""
    ordered = sorted(times)
    return f"{statistics.median(ordered) * 1000:.1f}, {ordered[int(len(ordered) * 0.99)] * 1000:.1f}"


if __name__ == "__main__":
    port, key, seconds = sys.argv[1:]
    print(json.dumps(Bystander(int(port), key).watch(float(seconds))))  # noqa: T201  # for the test
