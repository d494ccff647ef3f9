"""Every command and program of the documents, in order, in bash and in zsh, and a second time in the same clone."""

import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients.documents import Block, blocks, documents, indented, stories
from tests.clients.environments import CLIENTS, environment, missing
from tests.clients.shells import SHELLS
from tests.clients.terminals import SECONDS, Terminal
from tests.faults.nodes import ROOT
from tests.support import servers
from tests.support.workers import NOT_TRIED

DOCUMENTS = documents(ROOT)
STORIES = stories(ROOT, DOCUMENTS)
ASKED_FOR = ("make", "curl")
"""Programs that the README asks for first, besides Python."""
USUAL = (
    *("awk", "base64", "basename", "cat", "chmod", "cp", "cut", "date", "dirname", "echo", "env", "false", "find"),
    *("grep", "head", "id", "kill", "ln", "ls", "mkdir", "mv", "nice", "od", "printf", "rm", "sed", "sh", "sleep"),
    *("sort", "tail", "tee", "test", "touch", "tr", "true", "uname", "uniq", "wc", "xargs"),
)
"""Programs that every Unix has."""
OUTSIDE = ("HOME", "LANG", "TMPDIR", "NODE_EXTRA_CA_CERTS")
"""Variables in the environment of a reader's shell, besides settings of package managers and certificates."""
MANAGERS = ("PIP_", "UV_", "SSL_", "NPM_CONFIG_", "npm_config_")
LEFT = shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info", "requirements-agents.txt", "node_modules")
PORTS = ("8000", "9000", "11434")
"""Ports in the documents: ours, that of a receiver of webhooks, that of a language model."""
SCALED = {"HOST=0.0.0.0": "HOST=127.0.0.1", "--seconds 5 --rounds 5": "--seconds 0.2 --rounds 1"}
"""Text of the documents, and the smaller scale at which the test runs it."""
WRONG = re.compile(r"Traceback|CommandError|command not found|(syntax|parse) error|^(curl|zsh|bash): ", re.MULTILINE)
DIFFERENT = {
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "<id>",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)": "<time>",
    r'"messageId":"[0-9a-f]{16}"': '"messageId":"<hex>"',
}
"""Text that differs in each run. A document shows one example of it."""
ENDINGS = {0, 1, 2, 130}
"""Exit codes after Ctrl-C: ours, that of Celery, of make and of a shell."""


class Walk(NamedTuple):
    """A reader's machine: a clone, and what is installed."""

    clone: Path
    environment: dict[str, str]
    changes: dict[str, str]
    """Text of the documents, and what the test types in its place: ports, addresses, scale."""


def installed(folder: Path) -> None:
    """Make a folder of programs, with nothing but what the README asks for."""
    folder.mkdir()
    for name in (*ASKED_FOR, *USUAL):
        if path := shutil.which(name):
            (folder / name).symlink_to(path)
    (folder / "python3").write_text(f'#!/bin/sh\nexec {Path(sys.executable).resolve()} "$@"\n')
    (folder / "python3").chmod(0o755)


@contextmanager
def walking(folder: Path) -> Iterator[Walk]:
    """Give a reader's machine, with servers of a production."""
    shutil.copytree(ROOT, folder / "taskdesk", ignore=LEFT, dirs_exist_ok=True)
    installed(folder / "bin")
    outside = {name: value for name, value in os.environ.items() if name in OUTSIDE or name.startswith(MANAGERS)}
    ports = {port: str(servers.free_port()) for port in PORTS}
    outside |= {"PATH": str(folder / "bin"), "TERM": "dumb", "DJANGO_COLORS": "nocolor", "PORT": ports["8000"]}
    with servers.redis() as redis, servers.postgres() as postgres:
        folders = {"/var/lib/taskdesk": str(folder / "data")}
        addresses = {"redis://host:6379/0": redis, "postgres://user:password@host/taskdesk": postgres}
        yield Walk(folder / "taskdesk", outside, ports | SCALED | folders | addresses)


def link_clients(cache: Path, folder: Path) -> None:
    """Put the official clients that other tests use, too, where the documents install them."""
    folder.mkdir()
    for name, installed in (("python-1.3.0", "venv"), ("javascript-1.3.0", "node_modules")):
        client = next(client for client in CLIENTS if client.name == name)
        if not missing(client):
            (folder / installed).symlink_to(environment(client, cache) / installed)


@pytest.mark.clients
@pytest.mark.parametrize("story", STORIES)
def test_every_command_works_as_printed_also_a_second_time(
    story: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Run in bash in a fresh clone, then in zsh in the same one."""
    assert pytestconfig.cache
    link_clients(pytestconfig.cache.mkdir("clients"), tmp_path / "client")
    cache = pytestconfig.cache.mkdir("shells")
    with walking(tmp_path) as walk:
        for shell in SHELLS.values():
            follow([block for block in STORIES[story] if "long" not in block.marks], walk, shell(cache))


@pytest.mark.fault
@pytest.mark.long
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("name", SHELLS)
def test_every_command_works_twice_in_one_shell(
    name: str, story: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Run in a fresh clone for each shell, the long commands too."""
    assert pytestconfig.cache
    with walking(tmp_path) as walk:
        for _ in ("first", "second"):
            follow(STORIES[story], walk, SHELLS[name](pytestconfig.cache.mkdir("shells")))


def untried(block: Block) -> str:
    """Return why no test of this machine runs a block; empty if one does."""
    lacking = [program for program in block.needs if not shutil.which(program)]
    return f"{', '.join(lacking)} is not installed" if lacking else block.marks.get("not run", "")


def follow(story: list[Block], walk: Walk, shell: list[str]) -> None:
    """Do what a story says."""
    with Reader(walk, shell) as reader:
        for block in story:
            reader.read(block)


class Reader:
    """A reader who follows a document."""

    def __init__(self, walk: Walk, shell: list[str]) -> None:
        self.walk, self.shell = walk, shell
        password = secrets.token_urlsafe(12)
        self.answers = {
            r"Username.*: ": f"ann-{secrets.token_hex(4)}",
            r"Email address: ": "",
            r"Password.*: ": password,
        }
        """Answers to what commands ask."""
        self.terminals: dict[str, Terminal] = {}
        self.running: set[str] = set()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            for name in sorted(self.running):
                self.end(name)
        finally:
            for terminal in self.terminals.values():
                terminal.close()

    def read(self, block: Block) -> None:
        """Do what a block says."""
        if untried(block):
            return
        for program in block.needs:
            self.install(program)
        text = self.here(block.text)
        if "save as" in block.marks:
            path = self.walk.clone / block.marks["save as"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif block.runs:
            name = next(iter(block.terminals), "")
            for other in block.terminals:
                self.end(other)
            terminal = self.terminal(name)
            since = len(terminal.text)
            if name:
                terminal.begin(text)
                self.running.add(name)
            else:
                self.compare_codes(block, terminal)
            for output in block.outputs:
                self.compare(block, output, terminal, since)
            assert not (found := WRONG.search(self.unexpected(block, terminal.shown(since)))), (block.place, found)

    def install(self, program: str) -> None:
        """Install a program that the text asks for."""
        path, here = shutil.which(program), Path(self.walk.environment["PATH"]) / program
        if path and not here.exists():
            here.symlink_to(path)

    def here(self, text: str) -> str:
        """Return the text with the ports and addresses of this machine."""
        for written, real in self.walk.changes.items():
            text = text.replace(written, real)
        return text

    def terminal(self, name: str) -> Terminal:
        if name not in self.terminals:
            self.terminals[name] = Terminal(self.shell, self.walk.clone, self.walk.environment, self.answers)
        return self.terminals[name]

    def end(self, name: str) -> None:
        """Press Ctrl-C if something runs there."""
        if name not in self.running:
            return
        self.running.remove(name)
        terminal = self.terminals[name]
        code = terminal.interrupt()
        assert code in ENDINGS, terminal.text
        assert not WRONG.search(terminal.text), terminal.text

    def compare_codes(self, block: Block, terminal: Terminal) -> None:
        """Paste the block, and look at the exit code of each command."""
        steps = terminal.paste(self.here(block.text))
        wanted = [0] * (len(steps) - 1) + [int(block.marks.get("exits with", 0))]
        for step, code in zip(steps, wanted, strict=True):
            assert step.code == code, f"{block.place}: {step.command}\nended with {step.code}:\n{step.printed}"

    def compare(self, block: Block, output: str, terminal: Terminal, since: int) -> None:
        """Wait until what the document shows is printed; work in the background may print it later."""
        deadline = time.monotonic() + SECONDS
        while missing := first_missing(self.here(output), terminal.shown(since)):
            assert time.monotonic() < deadline, f"{block.place}: printed no {missing}:\n{terminal.shown(since)}"
            time.sleep(0.02)

    def unexpected(self, block: Block, printed: str) -> str:
        """Return what was printed and the document does not show."""
        shown = [pattern(self.here(line)) for output in block.outputs for line in output.splitlines()]
        return "\n".join(line for line in printed.splitlines() if not any(p.fullmatch(same(line)) for p in shown))


def same(line: str) -> str:
    """Return a line with names in place of what differs each time."""
    for found, name in DIFFERENT.items():
        line = re.sub(found, name, line)
    return line


def pattern(line: str) -> re.Pattern[str]:
    """Return what fits a line of a document."""
    return re.compile(".*".join(re.escape(part) for part in same(line).split("…")))


def first_missing(output: str, printed: str) -> str | None:
    """Return the first line of a document that was not printed, in its order."""
    lines = iter(same(line) for line in printed.splitlines())
    for wanted in filter(None, output.splitlines()):
        if wanted != "…" and not any(pattern(wanted).fullmatch(line) for line in lines):
            return wanted
    return None


@pytest.mark.clients
@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_block_is_tried_or_says_why_not(document: str) -> None:
    assert [mistake for block in blocks(ROOT, document) for mistake in block.mistakes()] == []
    assert indented(ROOT, document) == []


UNTRIED = [block for document in DOCUMENTS for block in blocks(ROOT, document) if untried(block)]


@pytest.mark.clients
@pytest.mark.parametrize("block", UNTRIED, ids=lambda block: block.place)
def test_a_command_that_is_not_tried_is_named_with_the_reason(block: Block) -> None:
    pytest.skip(f"{NOT_TRIED}: {block.place}: {untried(block)}")


UNTOLD = """
```bash
echo 1
```

```text
make run
```

    make test

<!-- later: 1 -->
```sh
true
```
"""


@pytest.mark.clients
def test_a_block_that_nothing_tries_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(UNTOLD)
    found = [mistake for block in blocks(tmp_path, "README.md") for mistake in block.mistakes()]
    assert [mistake.partition(":")[2] for mistake in [*found, *indented(tmp_path, "README.md")]] == [
        "2: a block of bash: run it, or say why not",
        "6: a command in a block of text, which is not run",
        "13: no such mark as later",
        "10: code that is indented: fence it, and say its language",
    ]
