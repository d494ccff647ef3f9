"""The wheel without its extra: the client and what it needs, in an environment with nothing else."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.environments import INSTALL_SECONDS
from tests.conftest import Server
from tests.faults.nodes import ROOT
from tests.support.servers import COMMAND_SECONDS

pytestmark = [pytest.mark.clients, pytest.mark.slow]

LEFT = shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info", "requirements-agents.txt")
PROGRAM = """
import importlib.metadata, importlib.util, json, sys
from a2a.client import SyncClient, text_of

with SyncClient(sys.argv[1], token=sys.argv[2]) as client:
    reply = client.send("Hello from elsewhere")
    pieces = [update.text for update in client.stream("again")]
print(json.dumps({
    "reply": text_of(reply),
    "stream": "".join(pieces),
    "django": importlib.util.find_spec("django") is not None,
    "packages": sorted(one.metadata["Name"].lower() for one in importlib.metadata.distributions()),
}))
"""
NEEDED = {"cryptography", "httpx", "httpx-sse", "msgspec", "orjson", "pyjwt", "rfc8785", "taskdesk", "websockets"}
BROUGHT = {"anyio", "certifi", "cffi", "h11", "httpcore", "idna", "pycparser", "typing-extensions", "typing_extensions"}
"""Packages that those need."""


def run(line: list[str], folder: Path, **more: str) -> str:
    outside = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}} | more
    done = subprocess.run(
        line,
        cwd=folder,
        env=outside,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_wheel_alone_sends_and_streams_without_the_service(server: Server, tmp_path: Path) -> None:
    shutil.copytree(ROOT, tmp_path / "tree", ignore=LEFT)
    uv, python = [sys.executable, "-m", "uv", "--quiet", "--system-certs"], tmp_path / "venv" / "bin" / "python"
    run([*uv, "build", "--wheel", "--out-dir", str(tmp_path / "wheels"), "."], tmp_path / "tree")
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    run([*uv, "venv", "--python", sys.executable, "venv"], tmp_path)
    locked = ["--constraint", str(ROOT / "requirements.lock")]
    run([*uv, "pip", "install", "--python", str(python), *locked, str(wheel)], tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    seen = json.loads(run([str(python), "-I", "program.py", f"{server.url}/agents/echo/", server.owner], tmp_path))
    command, agent = str(python.parent / "taskdesk"), f"{server.url}/agents/echo/"
    assert run([command, "send", agent, "Hello"], tmp_path, A2A_TOKEN=server.owner) == "Hello\n"
    done = subprocess.run(
        [command, "run"], cwd=tmp_path, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
    )
    assert (done.returncode, "pip install 'taskdesk[server]'" in done.stderr) == (1, True)
    assert (seen["reply"], seen["stream"], seen["django"]) == ("Hello from elsewhere", "again", False)
    assert NEEDED <= set(seen["packages"]) <= NEEDED | BROUGHT
