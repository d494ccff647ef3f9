"""A wait that is longer than the patience of the client and of the proxy before us: the official client of Python as it
is by default, through nginx."""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.clients.environments import CLIENTS, HERE, RUN_SECONDS, environment, nginx
from tests.faults.nodes import AGENTS, KEY, START_SECONDS, Node
from tests.support.servers import free_port

CLIENT_SECONDS = 5.0
"""How long the official client bears silence: the default of httpx, which it does not change."""
CONFIGURATION = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}
http {{
    access_log off; client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {target}; {more} }} }}
}}
"""
"""nginx as it is by default, in a folder of its own."""


@contextmanager
def proxy(program: str, folder: Path, port: int, target: str, more: str) -> Iterator[None]:
    """nginx before the target."""
    folder.mkdir()
    file = folder / "nginx.conf"
    file.write_text(CONFIGURATION.format(folder=folder, port=port, target=target, more=more))
    process = subprocess.Popen([program, "-p", str(folder), "-c", str(file)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            assert process.poll() is None, (folder / "error.log").read_text()
            assert time.monotonic() < deadline, "nginx did not begin"
            try:
                httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(10)


def last_of(cache: Path, url: str, binding: str, how: str, seconds: float) -> dict[str, Any]:
    """Return the last that the official client was given: the task, or the last event of a stream."""
    (sdk,) = [client for client in CLIENTS if client.name == "python-1.3.0"]
    python = environment(sdk, cache) / "venv/bin/python"
    outside = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    line = [str(python), "-I", str(HERE / "patience.py"), url, KEY, binding, how, str(seconds)]
    done = subprocess.run(line, env=outside, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    seen = orjson.loads(done.stdout)
    assert seen["took"] >= seconds
    (last,) = seen["last"].values()
    return last


def finished(
    tmp_path: Path, cache: Path, binding: str, seconds: float, more: str, how: str = "send", **settings: str
) -> dict[str, Any]:
    """Return the end of the task of an agent that says nothing for so long, as the official client was told."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    node = Node(tmp_path / "data", A2A_DEFAULT_AGENT="sleeper", A2A_PUBLIC_URL=url, **AGENTS, **settings)
    try:
        asyncio.run(node.start())
        with proxy(nginx(cache), tmp_path / "nginx", port, node.base, more):
            last = last_of(cache, url, binding, how, seconds)
        assert asyncio.run(node.stop()) == 0, node.log
    finally:
        node.kill()
    assert last["status"]["state"] == "TASK_STATE_COMPLETED"
    return last


@pytest.fixture(scope="session")
def cache(pytestconfig: pytest.Config) -> Path:
    assert pytestconfig.cache
    return pytestconfig.cache.mkdir("clients")


@pytest.mark.clients
@pytest.mark.parametrize(
    ("binding", "version"), [("JSONRPC", "1.0"), ("HTTP+JSON", "1.1")], ids=["JSON-RPC, HTTP/1.0", "REST, HTTP/1.1"]
)
def test_a_wait_outlasts_the_client_and_the_proxy(tmp_path: Path, cache: Path, binding: str, version: str) -> None:
    # nginx before 1.29.7 asks in HTTP/1.0 by default, later ones in HTTP/1.1.
    more = f"proxy_read_timeout 5s; proxy_http_version {version};"
    task = finished(tmp_path, cache, binding, CLIENT_SECONDS + 1.5, more, A2A_PING_SECONDS="1")
    assert [part["text"] for artifact in task["artifacts"] for part in artifact["parts"]] == ["awake"]


@pytest.mark.clients
def test_the_stream_of_a_silent_agent_outlasts_the_client_and_the_proxy(tmp_path: Path, cache: Path) -> None:
    more = "proxy_read_timeout 5s;"
    finished(tmp_path, cache, "JSONRPC", CLIENT_SECONDS + 1.5, more, "stream", A2A_PING_SECONDS="1")


@pytest.mark.fault
@pytest.mark.long
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_a_wait_of_90_s_through_nginx_as_it_is_by_default(tmp_path: Path, cache: Path, binding: str) -> None:
    task = finished(tmp_path, cache, binding, 90.0, "")
    assert [part["text"] for artifact in task["artifacts"] for part in artifact["parts"]] == ["awake"]
