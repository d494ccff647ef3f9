"""``python -m tests.faults.lister PORT KEY SECONDS PARAMS``: asks for lists on many connections at once.

PARAMS is a JSON array with the params of each connection.

It is a process of its own, so that its figures contain no waiting behind the test's own event loop.
"""

import asyncio
import json
import sys
import time
from threading import Thread
from typing import Any

from tests.faults.bystander import Bystander
from tests.faults.nodes import ROOT, Node


async def listed(node: Node, key: str, seconds: float, params: list[dict[str, Any]]) -> list[float]:
    """Return how many seconds each list took, over a connection for each of the params and for so long."""
    command = [sys.executable, "-m", "tests.faults.lister", str(node.port), key, str(seconds), json.dumps(params)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    spans: list[float] = json.loads(output)
    return spans


def main(port: int, key: str, seconds: float, params: list[dict[str, Any]]) -> list[float]:
    spans: list[float] = []
    ends = time.monotonic() + seconds

    def ask(own: dict[str, Any]) -> None:
        caller = Bystander(port, key)
        while (since := time.perf_counter()) and time.monotonic() < ends:
            caller.call("ListTasks", own)
            spans.append(time.perf_counter() - since)

    threads = [Thread(target=ask, args=(own,)) for own in params]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return spans


if __name__ == "__main__":
    port, key, seconds, params = sys.argv[1:]
    print(json.dumps(main(int(port), key, float(seconds), json.loads(params))))  # noqa: T201
