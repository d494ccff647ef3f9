"""A page of another origin calls, and follows a task by a link and over WebSocket, in Chromium.

The page consists of the programs in the documents. Its server is killed and restarted while it follows.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import orjson
import pytest

from tests.browser.chromium import SECONDS, chromium
from tests.clients.documents import saved
from tests.clients.environments import playwright
from tests.conftest import ROOT
from tests.faults.nodes import KEY, Node

pytestmark = [pytest.mark.browser, pytest.mark.slow]
DRIVER = Path(__file__).parent / "other_origins.py"
PROGRAMS = {
    "call.js": "call, linkTo",
    "follow.js": "follow",
    "watch.js": "watch",
    "socket.js": "socketTo",
    "ticket.js": "socketByTicket",
}
"""The programs in the documents, with the names that they export."""


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder, and give its origin."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=folder))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def write_page(folder: Path) -> None:
    folder.mkdir()
    names = ", ".join(PROGRAMS.values())
    lines = [f"import {{ {exports} }} from './{name}';" for name, exports in PROGRAMS.items()]
    for name in PROGRAMS:
        (folder / name).write_text(saved(ROOT, name))
    (folder / "page.js").write_text("\n".join([*lines, f"window.tools = {{ {names} }};"]))
    (folder / "index.html").write_text(
        '<!doctype html><title>Page</title><script type="module" src="page.js"></script>'
    )


async def driven(python: Path, *arguments: str) -> AsyncIterator[dict[str, Any]]:
    """Yield the lines that the driver prints."""
    process = await asyncio.create_subprocess_exec(
        python,
        "-I",
        DRIVER,
        *arguments,
        env=os.environ | {"CHROMIUM": chromium(python)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    assert process.stdout
    assert process.stderr
    try:
        async for line in process.stdout:
            yield orjson.loads(line)
        assert await process.wait() == 0, (await process.stderr.read()).decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_page_of_another_origin_follows_a_task_over_a_kill_and_sees_each_event_once(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    assert pytestconfig.cache
    python = playwright(pytestconfig.cache.mkdir("clients"))
    write_page(tmp_path / "page")
    steps = {}
    with ExitStack() as stack:
        listed, other = (stack.enter_context(serving(tmp_path / "page")) for _ in range(2))
        node = Node(
            tmp_path / "data", A2A_AGENT_MODULES="tests.faults.agents", A2A_CORS_ORIGINS=listed, A2A_LEASE_SECONDS="2"
        )
        stack.callback(node.kill)
        await node.start()
        async with asyncio.timeout(SECONDS):
            async for line in driven(python, node.base, KEY, listed, other):
                steps[line["step"]] = line
                if line["step"] == "following":
                    node.kill()
                    await node.start()
        task = await node.shown(steps["following"]["task"])
    check_events(steps, task)
    assert steps["stopped"]["state"] == 2, "the EventSource is closed"
    assert steps["stopped"]["attempts"] > 1
    assert steps["stopped"]["later"] == 0, "a browser that has seen the end does not come back"
    assert steps["readable"] == {
        "step": "readable",
        "card": [200, True],
        "rest": [200, True],
        "no key": [401, True],
        "large": [401, True],
    }
    assert steps["refused"] == {
        "step": "refused",
        "call": "TypeError",
        "link": "TypeError",
        "card": "TypeError",
        "stream": "TypeError",
        "source": 2,
        "socket": 1006,
    }


def check_events(steps: dict[str, Any], task: dict[str, Any]) -> None:
    """Check that each way saw the task, and then each event once to the last."""
    last = task["last_seq"]
    assert task["state"] == "completed"
    assert task["attempt"] > 1
    assert steps["followed"]["ends"] == {"link": last, "socket": last, "ticket": last}
    for events in steps["followed"]["seen"].values():
        (first, snapshot), *later = events
        assert "task" in snapshot
        assert [sequence for sequence, _ in later] == list(range(first + 1, last + 1))
        assert all(set(event) <= {"statusUpdate", "artifactUpdate"} for _, event in later)
