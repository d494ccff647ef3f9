"""A development server, as a process: it runs agents of a folder, reloads what is edited, and logs each call."""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from websockets import InvalidStatus

from tests.conftest import until
from tests.faults.clients import PATIENCE, client
from tests.faults.conftest import SHARED, Start
from tests.faults.nodes import AGENTS, HEEDING, KEY, Node, manage
from tests.transports.websocket.door import bearer, dialled

pytestmark = pytest.mark.fault

AGENT = '''
from a2a.agents import agent
from _words import WORD


@agent
async def greeter(run):
    """Greets."""
    yield f"{WORD}, {run.text}!"
'''
NAMES_OF_IMPORTS = """
import sys, threading

imports = set()
def note(event, details):
    if event == "import" and threading.current_thread() is not threading.main_thread():
        imports.add(details[0])
sys.addaudithook(note)
"""
"""A module that Python imports at its start: it keeps what threads import."""
FAILURES = """
import sys, sitecustomize
from importlib.util import find_spec
from a2a.agents import agent


@agent
async def failures(run):
    \"\"\"Names modules that exist and are not loaded, though a thread imported them.\"\"\"
    names = sorted(name for name in sitecustomize.imports if name.partition(".")[0] in sys.modules)
    failed = [name for name in names if name not in sys.modules and find_spec(name)]
    yield f"failed of {len(names)}: {failed}"
"""
FORGETS = """
from a2a.agents import agent


async def fetch():
    return "done"


@agent
async def forgets(run):
    \"\"\"Forgets to await.\"\"\"
    answer = "done"
    fetch()
    yield answer
"""
INTERRUPTS = """
import os, signal
if os.environ.get("RUN_MAIN"):
    os.killpg(0, signal.SIGINT)
"""
"""A module that Python imports at its start: Ctrl-C comes while the server of the reloader starts."""
RELOAD_SECONDS, SAVE_SECONDS = 120.0, 10.0


def answer_of(node: Node, agent: str = "greeter") -> str:
    """Return what the agent answers; empty while the server is away."""
    message = {"messageId": f"m-{time.monotonic_ns()}", "role": "ROLE_USER", "parts": [{"text": "Ann"}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    headers = {"Authorization": f"Bearer {KEY}"}
    try:
        answer = httpx.post(f"{node.base}/agents/{agent}/jsonrpc", json=call, headers=headers, timeout=30).json()
    except httpx.TransportError:
        return ""
    artifacts = answer.get("result", {}).get("task", {}).get("artifacts", [])
    return "".join(part["text"] for artifact in artifacts for part in artifact["parts"])


def edit(path: Path, text: str, happened: Callable[[], bool], node: Node) -> None:
    """Save the file, and again from time to time: what is saved while the server starts, it does not see."""
    deadline, again = time.monotonic() + RELOAD_SECONDS, 0.0
    while not happened():
        assert time.monotonic() < deadline, node.log
        if time.monotonic() > again:
            path.write_text(text)
            again = time.monotonic() + SAVE_SECONDS
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["runserver", "run"])
async def test_an_agent_of_a_folder_runs_and_each_call_is_logged(nodes: list[Node], tmp_path: Path, verb: str) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "greeter_module.py").write_text(AGENT)
    (folder / "_words.py").write_text('WORD = "Hello"\n')
    node = Node(tmp_path / "data", verb, A2A_AGENTS_DIR=str(folder))
    nodes.append(node)
    await node.start()
    assert answer_of(node) == "Hello, Ann!"
    line = r"INFO tasks_app\.calls POST /agents/greeter/jsonrpc SendMessage 200 \d+\.\d{3} s\n"
    assert len(until(lambda: re.findall(line, node.log), "the call is logged")) == 1
    if verb == "runserver":
        await refuses_sockets(node)
        reloads(node, folder)
    assert await node.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ["def greeter(:", "import _absent"], ids=["deleted", "completed"])
async def test_a_server_comes_up_once_no_file_is_broken(nodes: list[Node], tmp_path: Path, mistake: str) -> None:
    """A server that reloads itself ends at a broken file. No file is edited: one is deleted, or one is added."""
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "greeter_module.py").write_text(AGENT)
    (folder / "_words.py").write_text('WORD = "Hello"\n')
    (folder / "broken.py").write_text(f"{mistake}\n")
    node = Node(tmp_path / "data", "runserver", A2A_AGENTS_DIR=str(folder))
    nodes.append(node)
    node.launch()
    await node.logs("broken.py:1: ")
    if "absent" in mistake:
        (folder / "_absent.py").touch()
    else:
        (folder / "broken.py").unlink()
    await node.logs("Taskdesk is ready")
    await asyncio.to_thread(until, lambda: answer_of(node) == "Hello, Ann!", "an answer of the agent")
    assert await node.stop(signal.SIGTERM) == 0
    assert "Traceback" not in node.log


@pytest.mark.parametrize("verb", ["runserver", "run"])
async def test_warnings_of_python_reach_the_author(nodes: list[Node], tmp_path: Path, verb: str) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "forgets.py").write_text(FORGETS)
    node = Node(tmp_path / "data", verb, A2A_AGENTS_DIR=str(tmp_path / "agents"))
    nodes.append(node)
    await node.start()
    assert answer_of(node, "forgets") == "done"
    await node.logs("forgets.py:13: RuntimeWarning: coroutine 'fetch' was never awaited")
    assert await node.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize("verb", ["runserver", "run"])
async def test_a_file_gets_the_address_and_the_key_at_once(nodes: list[Node], tmp_path: Path, verb: str) -> None:
    """Python fills a buffer for a file or a pipe, such as `make run | tee log`."""
    node = Node(tmp_path / "data", verb, PYTHONUNBUFFERED="")
    nodes.append(node)
    await node.start()
    await node.logs("Taskdesk is ready")
    assert KEY in node.log
    assert await node.stop() == 0


@pytest.mark.slow
async def test_no_import_beside_the_reloader_fails(nodes: list[Node], tmp_path: Path) -> None:
    """The reloader ends with a KeyError if a module goes while it lists them."""
    for folder, name, text in (("site", "sitecustomize", NAMES_OF_IMPORTS), ("agents", "failures", FAILURES)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.py").write_text(text)
    folders = {"A2A_AGENTS_DIR": str(tmp_path / "agents"), "PYTHONPATH": str(tmp_path / "site")}
    node = Node(tmp_path / "data", "runserver", **folders)
    nodes.append(node)
    await node.start()
    assert re.fullmatch(r"failed of \d{3}: \[\]", answer_of(node, "failures"))
    assert await node.stop(signal.SIGTERM) == 0  # a suite in the background ignores Ctrl-C, and so does what it starts


@pytest.mark.slow
@pytest.mark.parametrize("sender", ["terminal", "interrupt", "terminate"])
async def test_agents_at_work_get_their_grace_at_the_end(start: Start, tmp_path: Path, sender: str) -> None:
    """A terminal tells the server and its parent, `kill` the parent alone."""
    node, gate = await start("runserver", A2A_GRACE_SECONDS="300"), tmp_path / "open"
    async with client(node) as caller:
        task_id = await caller.send("once", seconds=300, until=str(gate))
        await caller.state(task_id, "TASK_STATE_WORKING")
        if sender == "terminal":
            os.killpg(node.pid, signal.SIGINT)
        else:
            node.tell(signal.SIGINT if sender == "interrupt" else signal.SIGTERM)
        await node.logs("1 run has 300 s to end")
        gate.touch()
        assert await node.ended(PATIENCE) == 0
    task = await node.shown(task_id)
    assert ([run["outcome"] for run in task["runs"]], task["state"]) == (["completed"], "completed")
    assert "Traceback" not in node.log


@pytest.mark.slow
async def test_a_second_ctrl_c_ends_agents_at_work(start: Start) -> None:
    node = await start("runserver", A2A_GRACE_SECONDS="60")
    async with client(node) as caller:
        await caller.state(await caller.send("once"), "TASK_STATE_WORKING")
    os.killpg(node.pid, signal.SIGINT)
    await node.logs("1 run has 60 s to end")
    await asyncio.sleep(1)  # signals that come together are one
    os.killpg(node.pid, signal.SIGINT)
    assert await node.ended() == 1
    assert "SIGINT again: leaving at once" in node.log
    assert "Traceback" not in node.log


async def test_ctrl_c_while_the_server_starts_ends_it_quietly(nodes: list[Node], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTS)
    node = Node(tmp_path / "data", "runserver", PYTHONPATH=str(tmp_path), **AGENTS)
    node.command = [sys.executable, "-c", HEEDING, *node.command]
    nodes.append(node)
    node.launch()
    assert await node.ended() == 128 + signal.SIGINT
    assert node.log == ""


async def refuses_sockets(node: Node) -> None:
    """A socket on daphne would have no limits, so the card promises none."""
    async with httpx.AsyncClient(base_url=node.base, headers={"A2A-Version": "1.0"}) as caller:
        card = (await caller.get("/.well-known/agent-card.json")).json()
    assert {each["protocolBinding"] for each in card["supportedInterfaces"]} == {"JSONRPC", "HTTP+JSON"}
    for _ in range(2):
        with pytest.raises(InvalidStatus, match="403"):
            async with dialled(node.base, **bearer(KEY)):
                """Never open."""
    assert node.log.count("this server has no limits for WebSocket connections, so it refuses them") == 1
    assert "Traceback" not in node.log


def reloads(node: Node, folder: Path) -> None:
    """A mistake is said in a sentence, and mended while the server runs; an edited helper is seen too."""
    agent, mistake = folder / "greeter_module.py", AGENT.replace("@agent", "@agent(timeot=3)")
    edit(agent, mistake, lambda: "there is no option timeot=; did you mean timeout=?" in node.log, node)
    (folder / "_words.py").write_text('WORD = "Goodbye"\n')
    edit(agent, AGENT.replace("}!", "}."), lambda: answer_of(node) == "Goodbye, Ann.", node)
    assert "Traceback" not in node.log


def test_a_production_logs_no_calls_and_has_no_development_server(tmp_path: Path) -> None:
    printed = "from django.conf import settings; print(settings.A2A_LOG_CALLS)"
    done = manage(tmp_path, "shell", "--no-imports", "-c", printed, **SHARED)
    assert done.stdout == "False\n"
    refused = manage(tmp_path, "runserver", **SHARED)
    assert refused.returncode == 1
    assert "SECRET_KEY is set, which is for production. `runserver` is for development" in refused.stderr


def test_a_development_server_is_not_opened_by_an_argument(tmp_path: Path) -> None:
    done = manage(tmp_path, "runserver", "0.0.0.0:8000")
    assert done.returncode == 1
    assert "0.0.0.0: `runserver` is for this machine only" in done.stderr
