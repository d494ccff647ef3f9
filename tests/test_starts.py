"""Starts of a server: settings of .env, bounds of settings, agents of a folder."""

import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.environment import database, read_env_file, text
from tasks_app import agent_files
from tasks_app.management.reference.settings import make


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of settings; what is read from it is forgotten again."""
    for name in ("SECRET_KEY", "SECRET_KEY_FILE", "LLM_MODEL", "LLM_API_KEY", "LLM_API_KEY_FILE", "PORT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return tmp_path / ".env"


def test_a_file_adds_settings_and_changes_none(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("# mine\nLLM_MODEL='llama 3'\nexport PORT=8001\n")
    monkeypatch.setenv("PORT", "9001")
    read_env_file(file)
    assert (text("LLM_MODEL"), text("PORT")) == ("llama 3", "9001")


def test_a_secret_of_the_environment_wins_however_it_is_given(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("LLM_API_KEY_FILE=/nowhere\n")
    monkeypatch.setenv("LLM_API_KEY", "from the environment")
    read_env_file(file)
    assert text("LLM_API_KEY") == "from the environment"


@pytest.mark.parametrize(
    ("content", "line"),
    [("LLM_MODEL\n", 1), ("# mine\n\nLLM_MODEL=llama\n\n  hunter2 and more\n", 5), ("PORT=1\nA='hunter2\n", 2)],
    ids=["a name alone", "words", "an open quote"],
)
def test_a_line_that_is_no_setting_stops_the_start(file: Path, content: str, line: int) -> None:
    file.write_text(content)
    with pytest.raises(ImproperlyConfigured) as refused:
        read_env_file(file)
    assert str(refused.value) == f"{file}:{line}: a line of settings must be like NAME=value"
    assert text("LLM_MODEL") == text("PORT") == ""


def test_a_file_that_cannot_be_read_stops_the_start(file: Path) -> None:
    file.write_bytes(b"LLM_MODEL=\xff\n")
    with pytest.raises(ImproperlyConfigured, match="cannot read the settings"):
        read_env_file(file)


@pytest.mark.parametrize("name", ["SECRET_KEY", "SECRET_KEY_FILE"])
def test_a_production_reads_no_file(file: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    file.write_text("LLM_MODEL=llama\n")
    monkeypatch.setenv(name, "x" * 50)
    read_env_file(file)
    assert text("LLM_MODEL") == ""


def test_a_file_cannot_make_a_production(file: Path) -> None:
    file.write_text("LLM_MODEL=llama\nSECRET_KEY=hunter2\n")
    with pytest.raises(ImproperlyConfigured, match="SECRET_KEY is a setting of production") as refused:
        read_env_file(file)
    assert "hunter2" not in str(refused.value)
    assert text("LLM_MODEL") == text("SECRET_KEY") == ""


def test_a_folder_of_agents_stays_where_it_is_when_an_agent_changes_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = Path("config/sections/agents.py").absolute()
    monkeypatch.chdir(tmp_path)
    own = str(tmp_path / "agents")
    for value, place in (
        ("agents", own),
        ("~/agents", own),
        ("../agents/../" + tmp_path.name + "/agents", own),
        ("", ""),
    ):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("A2A_AGENTS_DIR", value)
        assert runpy.run_path(str(section))["A2A_AGENTS_DIR"] == place


@pytest.mark.parametrize(
    ("place", "name"),
    [("own.sqlite3", "{here}/own.sqlite3"), ("/own.sqlite3", "/own.sqlite3"), (":memory:", ":memory:")],
)
def test_a_file_of_sqlite_stays_where_it_is_when_an_agent_changes_the_directory(
    monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{place}")
    assert database("DATABASE_URL", "")["NAME"] == name.format(here=Path.cwd())


@pytest.mark.parametrize(("section", "name"), [("agents", "A2A_AGENTS_DIR"), ("process", "DATA_DIR")])
def test_a_folder_is_the_same_for_a_process_that_starts_in_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: str, name: str
) -> None:
    """The fork server starts anew wherever an agent has moved its process to."""
    source = str(Path(f"config/sections/{section}.py").absolute())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("A2A_ENV_FILE", "")
    monkeypatch.setenv(name, "own")
    for directory in (tmp_path, tmp_path / "elsewhere"):
        monkeypatch.chdir(directory)
        assert str(runpy.run_path(source)[name]) == str(tmp_path / "own")


def test_without_a_file_nothing_happens(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_env_file(file)
    monkeypatch.setenv("A2A_ENV_FILE", "")
    assert runpy.run_path("config/sections/process.py")["A2A_ENV_FILE"] == ""


def test_a_file_that_is_named_must_exist(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = Path("config/sections/process.py").absolute()
    monkeypatch.chdir(file.parent)
    monkeypatch.setenv("A2A_ENV_FILE", "my.env")
    with pytest.raises(ImproperlyConfigured, match=f"A2A_ENV_FILE: there is no file {file.parent / 'my.env'}"):
        runpy.run_path(str(section))
    monkeypatch.setenv("SECRET_KEY", "x" * 50)
    runpy.run_path(str(section))


@pytest.mark.parametrize("name", ["A2A_KEY_HOURS", "A2A_EXCHANGE_DAYS", "A2A_TASK_DAYS", "A2A_QUEUE_HOURS"])
def test_a_time_that_no_date_can_have_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "99999999")
    with pytest.raises(ImproperlyConfigured, match=rf"{name} must be at most \d+, not '99999999'"):
        runpy.run_path("config/sections/retention.py")


def test_every_setting_in_days_or_hours_has_an_upper_bound() -> None:
    times = re.findall(r"`A2A_[A-Z_]+_(?:DAYS|HOURS)` \| ([^|]+) \|", make())
    assert len(times) > 10
    assert all(re.fullmatch(r"number from [0-9.]+ to [0-9,]+", kind) for kind in times)


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """Give a folder of agents."""
    settings.A2A_AGENTS_DIR = str(tmp_path)
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before


def test_the_modules_of_a_folder_are_found(folder: Path) -> None:
    for name in ("greeter_of_mine.py", "_helper.py", "test_greeter.py", "conftest.py", "notes.txt", "data/x.json"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (folder / "team_of_mine").mkdir()
    (folder / "team_of_mine" / "__init__.py").touch()
    assert agent_files.find_modules() == ["greeter_of_mine", "team_of_mine"]
    assert sys.path[-1] == str(folder)


@pytest.mark.parametrize("name", ["json", "config", "tasks_app"])
def test_a_file_with_the_name_of_another_module_is_refused(folder: Path, name: str) -> None:
    (folder / f"{name}.py").touch()
    with pytest.raises(ImproperlyConfigured, match=f"{name}.py has the name of another module .*; rename it"):
        agent_files.find_modules()


def test_a_file_that_cannot_be_imported_is_named(folder: Path) -> None:
    (folder / "my-agents.py").touch()
    with pytest.raises(ImproperlyConfigured, match=r"my-agents\.py cannot be imported; rename it"):
        agent_files.find_modules()


def test_a_folder_that_is_not_there_is_named(folder: Path, settings: Any) -> None:
    settings.A2A_AGENTS_DIR = str(folder / "nowhere")
    with pytest.raises(ImproperlyConfigured, match="A2A_AGENTS_DIR: cannot read the folder"):
        agent_files.find_modules()
    settings.A2A_AGENTS_DIR = ""
    assert agent_files.find_modules() == []
