"""Scripts in the texts of callers: pages show them in Chromium, and none runs."""

import asyncio
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

import httpx
import orjson
import pytest

from tests.browser.chromium import SECONDS, chromium
from tests.clients.environments import playwright
from tests.faults.nodes import KEY, Node

pytestmark = [pytest.mark.browser, pytest.mark.slow]
DRIVER = Path(__file__).with_name("scripts.py")
RUN = "document.documentElement.setAttribute('data-ran','');alert(1)"
HOSTILE = (
    f'</pre></textarea><script>{RUN}</script><img src=x onerror="{RUN}"><svg onload="{RUN}"></svg>'
    f'<a href="javascript:{RUN}">here</a>\u202e<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>'
)


async def send_hostile(node: Node) -> None:
    """Leave hostile texts wherever a caller may put them."""
    message = {"messageId": HOSTILE[:100], "role": "ROLE_USER", "parts": [{"text": HOSTILE}, {"data": {HOSTILE: 1}}]}
    metadata = {"agent": "echo", HOSTILE[:60]: HOSTILE}
    body = {"jsonrpc": "2.0", "id": HOSTILE, "method": "SendMessage"}
    headers = {"Authorization": f"Bearer {KEY}", "A2A-Version": "1.0"}
    async with httpx.AsyncClient(base_url=node.base, headers=headers, timeout=30) as client:
        answer = await client.post("/jsonrpc", json=body | {"params": {"message": message, "metadata": metadata}})
        assert "result" in answer.json(), answer.text
        await client.post("/jsonrpc", json={"jsonrpc": "2.0", "id": 1, "method": HOSTILE[:64], "params": {}})


async def test_a_script_in_the_text_of_a_caller_runs_on_no_page(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    assert pytestconfig.cache
    python = playwright(pytestconfig.cache.mkdir("clients"))
    with ExitStack() as stack:
        node = Node(tmp_path / "data")
        stack.callback(node.kill)
        await node.start()
        await send_hostile(node)
        password = (tmp_path / "data" / "admin.password").read_text().strip()
        tasks = [f"/admin/tasks_app/task/{row['id']}/change/" for row in await node.lines("tasks", "list")]
        calls = [f"/admin/tasks_app/exchange/{row['id']}/change/" for row in await node.lines("exchanges", "list")]
        paths = ["/admin/tasks_app/task/", "/admin/tasks_app/exchange/", *tasks, *calls]
        done = await asyncio.to_thread(
            subprocess.run,
            [python, "-I", DRIVER, node.base, password, KEY, HOSTILE, *paths],
            env=os.environ | {"CHROMIUM": chromium(python)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    lines = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert lines.pop() == {"dialogs": []}
    assert [line["path"] for line in lines] == ["/", *paths]
    assert [line for line in lines if line["violations"] or line["marked"] or line["links"]] == []
    shown = [line["path"] for line in lines if line["shown"]]
    assert {"/", *tasks} < set(shown)
    assert set(calls) & set(shown)
