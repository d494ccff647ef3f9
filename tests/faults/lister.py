"""``python -m tests.faults.lister PORT KEY SECONDS CONNECTIONS PARAMS``: asks for a list on many connections at once.

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


async def listed(node: Node, key: str, seconds: float, connections: int, params: dict[str, Any]) -> list[float]:
    """Return how many seconds each list took, over so many connections and for so long."""
    numbers = (str(node.port), key, str(seconds), str(connections))
    command = [sys.executable, "-m", "tests.faults.lister", *numbers, json.dumps(params)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    spans: list[float] = json.loads(output)
    return spans


def main(port: int, key: str, seconds: float, connections: int, params: dict[str, Any]) -> list[float]:
    spans: list[float] = []
    callers = [Bystander(port, key) for _ in range(connections)]
    ends = time.monotonic() + seconds

    def ask(caller: Bystander) -> None:
        while (since := time.perf_counter()) and time.monotonic() < ends:
            caller.call("ListTasks", params)
            spans.append(time.perf_counter() - since)

    threads = [Thread(target=ask, args=(caller,)) for caller in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return spans


if __name__ == "__main__":
    port, key, seconds, connections, params = sys.argv[1:]
    print(json.dumps(main(int(port), key, float(seconds), int(connections), json.loads(params))))  # noqa: T201
