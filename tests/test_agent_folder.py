"""The folder of agents, read again while a process runs: all of it or nothing, and never half-written files."""

import importlib
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from a2a.agents import registry
from tasks_app import agent_files
from tasks_app.agent_files import AgentFolder, read_stamp
from tasks_app.checks.agents import check_agents_left_out
from tests.conftest import until

AGENT = '''
from a2a import Run, agent
from _own_words import WORD

@agent(name="folder-{name}")
def greet(run: Run) -> str:
    """Greets."""
    return WORD
'''

MUTE = """
class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError
raise Mute()
"""
"""A module whose error cannot be shown."""


class Place:
    """A folder that a test writes to, and the object that reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = AgentFolder()
        self.time = 1_700_000_000
        self.write("_own_words", "WORD = 'one'")

    def write(self, name: str, text: str) -> None:
        """Write a module, a second later than the one before."""
        file = self.path / f"{name}.py"
        file.write_text(text)
        self.time += 1
        os.utime(file, (self.time, self.time))

    def agent(self, module: str, name: str) -> None:
        self.write(module, AGENT.format(name=name))

    def look(self) -> bool:
        """Look twice, as the routine does before it reads."""
        return self.folder.refresh() or self.folder.refresh()

    def names(self) -> list[str]:
        return [name for name in registry.names() if name.startswith("folder-")]

    def answer(self, name: str) -> Any:
        agent = registry.get(f"folder-{name}")
        assert agent
        return agent.function(None)


@pytest.fixture
def place(tmp_path: Path, settings: Any) -> Iterator[Place]:
    settings.A2A_AGENTS_DIR = str(tmp_path)
    path, modules, agents = list(sys.path), dict(sys.modules), registry._agents
    place = Place(tmp_path)
    place.agent("own_first", "first")
    place.folder.load()
    yield place
    sys.path[:] = path
    for name in sys.modules.keys() - modules.keys():
        del sys.modules[name]
    registry._agents = agents


def test_an_import_that_does_not_end_is_named_until_it_does(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gate = threading.Event()
    monkeypatch.setitem(sys.modules, "gate", gate)
    monkeypatch.setattr(agent_files, "SLOW", 0.0)
    place.write("own_slow", "import gate\n\ngate.wait()")
    with ThreadPoolExecutor(1) as threads:
        looking = threads.submit(place.look)
        try:
            until(lambda: "is at own_slow.py:3:" in "".join(place.folder.troubles()), "it is named")
            until(lambda: "the reading of A2A_AGENTS_DIR has taken" in caplog.text, "it is logged")
        finally:
            gate.set()
    assert looking.result()
    assert place.folder.troubles() == []


@pytest.mark.requirement("ZONE-22")
def test_new_changed_and_removed_files_are_read_without_a_restart(place: Place) -> None:
    assert not place.look()
    place.agent("own_second", "second")
    assert place.look()
    assert place.names() == ["folder-first", "folder-second"]
    place.write("_own_words", "WORD = 'two'")
    assert place.look()
    assert (place.answer("first"), place.answer("second")) == ("two", "two")
    (place.path / "own_first.py").unlink()
    assert place.look()
    assert place.names() == ["folder-second"]
    assert registry.get("echo")


def test_files_that_are_still_written_are_not_read(place: Place) -> None:
    place.agent("own_second", "second")
    assert not place.folder.refresh()
    place.agent("own_second", "third")
    assert not place.folder.refresh()
    assert place.folder.refresh()
    assert place.names() == ["folder-first", "folder-third"]
    place.agent("own_second", "fourth")
    assert place.folder.refresh(at_once=True)


@pytest.mark.requirement("ZONE-22")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def broken(:", "own_second.py:1: SyntaxError: invalid syntax"),
        ("raise RuntimeError('not today')", "RuntimeError: not today"),
        ("import sys; sys.exit('no key')", "own_second.py:1: the import ended with SystemExit: no key"),
        (MUTE, "own_second.py:5: the import ended with Mute"),
        ("import no_such_module_here", "No module named 'no_such_module_here'"),
        (AGENT.format(name="x").replace("@agent(", "@agent(timeot=3, "), "did you mean timeout=?"),
        (AGENT.format(name="first"), "the name is taken already, by"),
        (AGENT.format(name="x").replace("folder-x", "echo"), "the name is taken already, by"),
    ],
)
def test_a_broken_file_leaves_every_former_agent_and_module(place: Place, text: str, sentence: str) -> None:
    before, module, revision = registry.get("folder-first"), sys.modules["own_first"], registry.revision
    place.write("_own_words", "WORD = 'two'")
    place.write("own_second", text)
    assert not place.look()
    (problem,) = place.folder.troubles()
    assert sentence in problem
    assert "the former agents go on" in problem
    assert registry.get("folder-first") is before
    assert sys.modules["own_first"] is module
    assert "own_second" not in sys.modules
    assert (place.answer("first"), registry.revision) == ("one", revision)
    place.agent("own_second", "second")
    assert place.look()
    assert (place.folder.troubles(), place.answer("second")) == ([], "two")


def test_a_broken_file_is_tried_once_until_it_changes(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.write("own_second", "def broken(:")
    for _ in range(4):
        place.folder.refresh()
    (problem,) = place.folder.troubles()
    assert "go on: own_second.py:1: SyntaxError: invalid syntax" in problem, (
        "strangers read it, and need not know the folder"
    )
    assert f"go on: {place.path}/own_second.py:1:" in caplog.text
    assert len([record for record in caplog.records if "was not read again" in record.message]) == 1


def test_a_file_that_raises_what_a_keyboard_does_leaves_the_former_agents(place: Place) -> None:
    place.write("own_second", "raise KeyboardInterrupt")
    with ThreadPoolExecutor(1) as pool:  # as the routine, in a thread that gets no signals
        assert not pool.submit(place.look).result()
    (problem,) = place.folder.troubles()
    assert "own_second.py:1: the import ended with KeyboardInterrupt" in problem
    assert place.names() == ["folder-first"]


def test_a_start_with_a_broken_file_is_refused(place: Place) -> None:
    place.write("own_second", "def broken(:")
    with pytest.raises(ImproperlyConfigured, match="invalid syntax"):
        AgentFolder().begin(["manage.py", "serve"])


def test_a_command_of_operators_works_beside_a_broken_file(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.write("own_second", "def broken(:")
    AgentFolder().begin(["manage.py", "a2a", "processes"])
    assert caplog.text.count("A2A_AGENTS_DIR was not read: ") == 1
    folder = AgentFolder()
    folder.is_tolerant = True  # as in the server that forks children
    folder.begin(["-c"])
    assert caplog.text.count("A2A_AGENTS_DIR was not read: ") == 2


def test_a_function_at_work_keeps_the_code_that_it_began_with(place: Place) -> None:
    former = registry.get("folder-first")
    assert former
    place.write("_own_words", "WORD = 'two'")
    assert place.look()
    assert (former.function(None), place.answer("first")) == ("one", "two")


def test_an_edit_within_the_same_second_and_of_the_same_size_is_seen(place: Place) -> None:
    file = place.path / "_own_words.py"
    before = file.stat()
    file.write_text("WORD = 'two'")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000))
    assert place.look()
    assert place.answer("first") == "two"


def test_installed_packages_and_modules_of_others_are_left_alone(place: Place) -> None:
    """A virtual environment in the folder, and a module that was imported before the folder was first read."""
    packages = place.path / ".venv" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "installed_there.py").write_text("")
    (place.path / "imported_before.py").write_text("")
    sys.path.append(str(packages))
    modules = [importlib.import_module(name) for name in ("installed_there", "imported_before")]
    folder = AgentFolder()
    folder.load()
    stamp = read_stamp()
    (packages / "installed_there.py").write_text("1 / 0")
    assert read_stamp() == stamp
    place.write("_own_words", "WORD = 'two'")
    assert folder.refresh(at_once=True)
    assert [sys.modules[module.__name__] for module in modules] == modules


def test_a_process_without_room_for_a_thread_reads_the_folder(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(agent_files, "SLOW", 0.0)
    monkeypatch.setattr(threading.Timer, "start", fail)
    place.write("_own_words", "WORD = 'two'")
    assert place.look()
    assert place.answer("first") == "two"
    assert place.folder.troubles() == []


def test_a_folder_that_goes_away_leaves_its_agents(place: Place, settings: Any) -> None:
    place.path.rename(place.path.with_name("elsewhere"))
    assert not place.look()
    assert "cannot read the folder" in place.folder.problem
    assert place.names() == ["folder-first"]


def test_agents_in_a_folder_that_is_no_package_are_warned_of(place: Place) -> None:
    for folder in ("greeters", "packed", "_hidden"):
        (place.path / folder).mkdir()
        place.agent(f"{folder}/hello", folder)
        place.write(f"{folder}/words", "WORD = '@agent'")
    place.write("packed/__init__", "")
    (warning,) = check_agents_left_out()
    assert warning.id == "a2a.W009"
    assert f"{place.path}/greeters/hello.py are not imported" in warning.msg
    assert f"Add {place.path}/greeters/__init__.py" in str(warning.hint)
    place.write("greeters/__init__", "from . import hello")
    assert check_agents_left_out() == []
    assert place.look()
    assert "folder-greeters" in place.names()


def test_agents_in_a_folder_that_a_module_imports_are_not_warned_of(place: Place) -> None:
    (place.path / "parts").mkdir()
    place.agent("parts/hello", "parts")
    place.write("own_second", "import parts.hello")
    assert place.look()
    assert "folder-parts" in place.names()
    assert check_agents_left_out() == []


def test_nothing_is_read_again_without_the_setting(place: Place, settings: Any) -> None:
    settings.A2A_AGENTS_RELOAD = False
    place.agent("own_second", "second")
    assert not place.look()


def test_a_reader_sees_the_whole_table_before_or_after_a_swap() -> None:
    first, rest = next(iter(registry)), registry.names()
    walk = iter(registry)
    table = registry._agents
    try:
        registry.swap(set(rest), {first.name: first})
        assert [agent.name for agent in walk] == list(rest)
        assert registry.names() == (first.name,)
        with registry.staging() as staged:
            registry.add(table["echo"])
        assert list(staged) == ["echo"]
        assert registry.names() == (first.name,)
    finally:
        registry._agents = table
