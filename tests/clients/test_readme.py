"""The README's commands and programs, as they are printed there, against a server that is started as it says."""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tests.clients.environments import CLIENTS, Client, environment, missing
from tests.clients.shells import SHELLS
from tests.faults.nodes import ROOT, Node
from tests.servers import free_port
from tests.workers import NOT_TRIED

pytestmark = pytest.mark.clients

README = (ROOT / "README.md").read_text(encoding="utf-8")
ANSWERS = ("{", "retry: ", "id: ", "data: ", "…")
"""Beginnings of lines that a command prints."""
EXPECTED = ("Operation timed out", '"POST /hook HTTP')
"""Of the end of a stream by --max-time, and of the receiver of webhooks, on standard error."""
PROGRAMS = ("import ", "from ")
SECONDS = 180
MARK = "@@ "


def section(title: str) -> str:
    """Return the text below a heading, up to the next of its level."""
    level = title.split(" ")[0]
    return re.split(rf"^{level} ", README.partition(f"\n{title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def blocks(title: str) -> list[list[str]]:
    """Return the indented blocks of a section, each without its indentation; blank lines do not end one."""
    found = []
    for is_code, lines in groupby(section(title).splitlines(), lambda line: not line or line.startswith("    ")):
        block = [line.removeprefix("    ") for line in lines]
        if is_code and any(block):
            found.append("\n".join(block).strip().split("\n"))
    return found


def program(title: str, number: int = 0) -> str:
    """Return a program of a section."""
    return "\n".join([block for block in blocks(title) if block[0].startswith(PROGRAMS)][number]) + "\n"


def steps() -> list[tuple[str, list[str]]]:
    """Return the commands about talking, each with the lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    for block in [*blocks("## Talk to it"), *blocks("## Write an agent")]:
        lines = [] if block[0].startswith(PROGRAMS) or "make run" in block[0] else block
        for line in filter(None, lines):
            if line.startswith(ANSWERS):
                found[-1][1].append(line)
            elif open_quotes(found) or continued(found):
                found[-1] = (f"{found[-1][0]}\n{line}", [])
            else:
                found.append((line, []))
    return found


def open_quotes(found: list[tuple[str, list[str]]]) -> bool:
    """Return whether the last command goes on: its text in single quotes is open."""
    return bool(found) and not found[-1][1] and found[-1][0].count("'") % 2 == 1


def continued(found: list[tuple[str, list[str]]]) -> bool:
    """Return whether the last command goes on: its line ends with a backslash."""
    return bool(found) and found[-1][0].endswith("\\")


def facts(line: str) -> set[str]:
    """Return what is the same with each run: states, codes and reasons, and how a stream begins."""
    return set(re.findall(r'"(?:state|reason|code|status)":(?:"[^"]*"|-?\d+)', line.partition(",…")[0])) | set(
        re.findall(r"^(?:retry|id): \d+$", line)
    )


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A server with the agent of the README."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "hello.py").write_text(program("## Write an agent"))
    settings = {"A2A_AGENT_MODULES": "hello", "PYTHONPATH": str(folder), "DEV_KEY": ""}
    node = Node(folder / "data", **settings)
    try:
        asyncio.run(node.start())
        yield node
        assert asyncio.run(node.stop()) == 0, node.log
        assert "Traceback" not in node.log
    finally:
        node.kill()


@pytest.mark.parametrize("name", SHELLS)
def test_every_command_works_as_printed_also_a_second_time(
    name: str, desk: Node, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    assert pytestconfig.cache
    shell = SHELLS[name](pytestconfig.cache.mkdir("shells"))
    for time in ("first", "second"):
        check(time, [*shell], desk, tmp_path)


def check(time: str, shell: list[str], desk: Node, folder: Path) -> None:
    """Run all commands in one shell, and compare what each prints with the README."""
    script, output = folder / f"{time}.sh", folder / time
    lines = []
    for number, (command, _) in enumerate(steps()):
        lines += [f"echo; echo '{MARK}{number}'", command]
    text = "\n".join(lines).replace("9000", str(free_port()))
    waits = f"until grep -q 'statusUpdate.*CANCELED' {output}; do sleep 0.1; done"
    script.write_text(text.replace("kill $HOOK", f"{waits}; kill $HOOK") + "\n")
    outside = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with output.open("wb") as file:
        done = subprocess.run(
            [*shell, str(script)], cwd=folder, env=outside | {"PORT": str(desk.port), "DATA_DIR": str(desk.folder)},
            stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if not any(words in line for words in EXPECTED)]
    assert said == [], done.stderr
    printed = output.read_text().split(f"\n{MARK}")[1:]
    assert len(printed) == len(steps())
    for (command, answers), answer in zip(steps(), printed, strict=True):
        wanted = {fact for line in answers for fact in facts(line)}
        shown = {fact for line in answer.splitlines() for fact in facts(line)}
        assert wanted <= shown, f"{time}: {command}\nprinted {answer}"


def test_the_story_of_the_readme_has_all_its_steps() -> None:
    """Reading the README wrongly must not make its test easy."""
    commands = [command.split(" ")[0] for command, _ in steps()]
    assert commands.count("call") == 10
    assert commands.count("rest") == 3
    assert sum(bool(answers) for _, answers in steps()) >= 11
    assert {fact for _, answers in steps() for line in answers for fact in facts(line)} >= {
        '"state":"TASK_STATE_COMPLETED"', '"state":"completed"', '"state":"TASK_STATE_CANCELED"', '"code":-32002',
        "id: 2",
    }  # fmt: skip


def run_client(client: Client, desk: Node, cache: Path, base: str) -> str:
    """Return what the README's program for an official client prints."""
    folder = environment(client, cache)
    file = folder / ("readme.py" if client.is_python else "readme.mjs")
    file.write_text(program("### Official clients", 0 if client.is_python else 1))
    line = [str(folder / "venv/bin/python"), "-I"] if client.is_python else [str(shutil.which("node"))]
    key = (desk.folder / "api.key").read_text()
    done = subprocess.run(
        [*line, file.name, base], cwd=folder, env={"PATH": os.environ["PATH"], "KEY": key}, capture_output=True,
        text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["python-1.3.0", "javascript-1.3.0"])
def test_the_programs_for_official_clients_tell_a_story(name: str, desk: Node, pytestconfig: pytest.Config) -> None:
    assert pytestconfig.cache
    client = next(client for client in CLIENTS if client.name == name)
    if reason := missing(client):
        pytest.skip(f"{NOT_TRIED} {name}: {reason}")
    base = re.findall(r"base +(\S+)", desk.log)[0]
    said = run_client(client, desk, pytestconfig.cache.mkdir("clients"), f"{base}agents/story/")
    assert "A small server stood at the edge of the network." in said
    assert "went on with the next word." in said
