"""Installing: packages of the user's own beside ours, and `pip install '.[server]'`."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.clients.documents import saved
from tests.faults.nodes import ROOT
from tests.support import servers

pytestmark = [pytest.mark.clients, pytest.mark.slow]

SECONDS = 600
BASH = str(shutil.which("bash"))
LEFT = shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info", "requirements-agents.txt")
PACKAGE = """
[project]
name = "package-of-mine"
version = "1"
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[tool.setuptools]
py-modules = ["package_of_mine"]
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as a user has it after a clone and `make install`, with a package that the user's agents need."""
    folder = tmp_path_factory.mktemp("install") / "clone"
    shutil.copytree(ROOT, folder, ignore=LEFT)
    package = folder.parent / "package"
    package.mkdir()
    (package / "pyproject.toml").write_text(PACKAGE)
    (package / "package_of_mine.py").write_text("WORD = 'mine'\n")
    (folder / "requirements-agents.txt").write_text(f"{package}\n")
    shell(f"make install PYTHON={sys.executable}", folder)
    return folder


def outside(**settings: str) -> dict[str, str]:
    """Return an environment in which nothing else is set."""
    ours = {"DATABASE_URL", "TEST_DATABASE_URL", "DATA_DIR", "A2A_ENV_FILE", "DJANGO_SETTINGS_MODULE", "VIRTUAL_ENV"}
    return {name: value for name, value in os.environ.items() if name not in ours} | settings


def shell(script: str, folder: Path, **settings: str) -> str:
    """Run lines as a user pastes them; return what they print."""
    done = subprocess.run(
        [BASH, "--norc", "-e", "-c", script],
        cwd=folder,
        env=outside(**settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def running(line: str, folder: Path, log: Path, ready: str, **settings: str) -> Iterator[None]:
    """Run a line that goes on until it is told to end, from when it has printed the words."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [BASH, "--norc", "-c", f"{line} & wait"],
            cwd=folder,
            env=outside(PYTHONUNBUFFERED="1", **settings),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + SECONDS
        while ready not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answer_of(base: str, agent: str, key: str) -> str:
    """Return the text that an agent answers with."""
    parts = [{"text": "A story"}, {"data": {"pause": 0}}] if agent == "story" else [{"text": "Ann"}]
    message = {"messageId": secrets.token_hex(8), "role": "ROLE_USER", "parts": parts}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    headers = {"Authorization": f"Bearer {key}"}
    answer = httpx.post(f"{base}/agents/{agent}/jsonrpc", json=call, headers=headers, timeout=120).json()
    artifacts = answer["result"]["task"]["artifacts"]
    return "".join(part["text"] for artifact in artifacts for part in artifact["parts"])


def test_packages_that_the_user_installed_stay(clone: Path) -> None:
    imports = ".venv/bin/python -c 'import package_of_mine, sys; print(package_of_mine.WORD)'"
    assert shell(imports, clone) == "mine\n"
    shell(f"make .venv/dev.stamp PYTHON={sys.executable}", clone)
    assert shell(f"{imports}; .venv/bin/python -m pytest --version >/dev/null", clone) == "mine\n"


def test_the_package_is_installed_and_runs_anywhere(clone: Path, tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    uv = ".venv/bin/python -m uv --quiet --system-certs"
    shell(f"{uv} venv {tmp_path}/venv", clone)
    shell(f"{uv} pip install --python {python} --constraint requirements.lock '.[server]'", clone)
    here = tmp_path / "here"
    here.mkdir()
    (here / "hello.py").write_text(saved(ROOT, "hello.py"))
    assert "runserver" in shell(f"{python.parent}/taskdesk --help", here)
    assert "no issues" in shell(f"{python.parent}/taskdesk check", here)
    port = str(servers.free_port())
    settings = {"A2A_AGENT_MODULES": "hello", "PORT": port}
    with running(f"{python.parent}/taskdesk run", here, tmp_path / "log", "Ctrl-C stops", **settings):
        base = f"http://127.0.0.1:{port}"
        assert answer_of(base, "hello", (here / ".data" / "api.key").read_text()) == "Hello, Ann!"
        login = httpx.get(f"{base}/admin/login/")
        assert (login.status_code, "Log in" in login.text) == (200, True)
        for file in sorted((ROOT / "templates" / "static" / "taskdesk").iterdir()):
            assert httpx.get(f"{base}/static/taskdesk/{file.name}").content == file.read_bytes()
        installed = python.parent.parent / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "templates"
        pages = {path.relative_to(ROOT / "templates") for path in (ROOT / "templates").rglob("*.html")}
        assert pages == {path.relative_to(installed) for path in installed.rglob("*.html")}
