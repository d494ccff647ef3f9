"""Every page in Chromium, at 1440, 1280 and 390 px, light and dark: nothing overflows, nothing is refused."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from django.apps import apps
from django.urls import reverse

from tests.browser.chromium import SECONDS, chromium
from tests.clients.environments import playwright
from tests.conftest import Server
from tests.support.receiver import Reply, receiver
from tests.transports.admin.pages import registered

pytestmark = [pytest.mark.browser, pytest.mark.long]
WALK = Path(__file__).parent / "walk.py"

ITEM = {"kind": "message", "messageId": "i", "role": "user", "parts": [{"kind": "text", "text": "Hello"}]}
SPARC: list[tuple[str, dict[str, Any]]] = [
    ("sparc/phase/set", {"workflowId": "the first", "phase": "specification"}),
    ("batchtools/execute", {"operation": "echo", "tasks": [{"message": ITEM}, "unknown"]}),
    ("memory/store", {"namespace": "sparc", "key": "k" * 255, "data": {"words": "w" * 2000}}),
]
"""Calls that make a workflow, a batch and an entry of the memory."""
EXECUTE = {"channel": "C024BE91L", "text": "Hello", "bot_token": "xoxb-1", "agent": "echo"}


def call(caller: httpx.Client, agent: str, text: str, hook: str = "", **wire: Any) -> None:
    message = {"messageId": f"m-{time.time_ns()}", "role": "ROLE_USER", "parts": [{"text": text}]}
    params: dict[str, Any] = {"message": message, "configuration": {"returnImmediately": True}}
    if hook:
        params["configuration"]["taskPushNotificationConfig"] = {"url": hook}
    body = {"jsonrpc": "2.0", "id": f"req-{text}", "method": "SendMessage", "params": params} | wire
    caller.post(f"/agents/{agent}/jsonrpc", json=body)


@pytest.fixture
def paths(server: Server) -> Iterator[list[str]]:
    """Give the addresses of every kind of page, with rows of every kind."""
    headers = {"Authorization": f"Bearer {server.owner}"}
    with receiver() as there, httpx.Client(base_url=server.url, headers=headers, timeout=30) as caller:
        there.paths = {"/bad": Reply(404), "/slow": Reply(503)}
        for number in range(60):
            call(caller, "echo", f"Hello {number}")
        for agent, path in (("raises", "/bad"), ("interview", "/slow"), ("story", "/ok")):
            call(caller, agent, agent, there.url + path)
        call(caller, "echo", "x", id="<script>alert(1)</script>" + "w" * 200, method="M" * 64)
        caller.post("/jsonrpc", content=b"{bad")
        httpx.post(f"{server.url}/jsonrpc", json={"jsonrpc": "2.0", "id": 1, "method": "GetTask"})
        for method, params in [*SPARC, ("execute_task", EXECUTE)]:
            path = "/jsonrpc" if method == "execute_task" else "/sparc"
            answer = caller.post(path, json={"jsonrpc": "2.0", "id": "s", "method": method, "params": params})
            assert "result" in answer.json(), answer.text
        there.wait(3)
        ends = time.monotonic() + 60
        while not server.rows("select 1 from tasks_app_delivery where state = 'dead'"):
            assert time.monotonic() < ends
            time.sleep(0.1)
        yield [*lists(), *pages(server), "/", "/admin/", "/admin/nothing/here/"]


def lists() -> list[str]:
    models = [model._meta for model in registered()]
    found = [reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist") for meta in models]
    queries = ("?outcome=error", "?outcome=xyz", "?method=none", "?p=9999", "?q=nothing")
    return found + [reverse("admin:tasks_app_exchange_changelist") + query for query in queries]


def pages(server: Server) -> list[str]:
    """Return the newest row of each kind, and of calls and tasks one for each end."""
    wanted = [(name, "order by id desc limit 1") for name in ("delivery", "webhook", "apikey", "principal")]
    wanted += [(name, "order by id desc limit 1") for name in ("workflow", "batch", "memoryentry")]
    wanted += [("exchange", f"where outcome = '{outcome}' limit 1") for outcome in ("result", "error", "refused")]
    wanted += [("task", f"where state = '{state}' limit 1") for state in ("completed", "failed", "input_required")]
    found = [
        reverse(f"admin:tasks_app_{name}_change", args=[row[0]])
        for name, which in wanted
        for row in server.rows(f"select id from {apps.get_model('tasks_app', name)._meta.db_table} {which}")  # noqa: S608
    ]
    return [*found, reverse("admin:auth_user_change", args=[1])]


def test_no_page_overflows_or_breaks_the_policy_and_the_box_streams(
    server: Server, paths: list[str], pytestconfig: pytest.Config
) -> None:
    assert pytestconfig.cache
    python = playwright(pytestconfig.cache.mkdir("clients"))
    password = (server.log.parent / "admin.password").read_text().strip()
    environment = os.environ | {"CHROMIUM": chromium(python)}
    done = subprocess.run(
        [python, "-I", WALK, server.url, password, server.owner, *paths],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [orjson.loads(line) for line in done.stdout.splitlines()]
    steps = {line["step"]: line for line in lines if "step" in line}
    assert steps["address"] == {"step": "address", "hash": "", "key": True}
    assert 10 < steps["story"]["streamed"] < len(steps["story"]["whole"])
    assert steps["story"]["whole"].endswith("went on with the next word.")
    assert "Ann wishes: tea" in steps["interview"]["answer"]
    assert "Authentication" in steps["wrong key"]["state"]
    assert steps["errors"] == {"step": "errors", "errors": [], "policy": []}
    walked = [line for line in lines if "path" in line]
    assert len(walked) == 6 * (len(paths) + 1)
    assert [line for line in walked if line["problems"]] == []
