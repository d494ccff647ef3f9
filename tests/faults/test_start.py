"""A start that cannot work ends with a sentence and exit code 1, never with a traceback."""

import os
import re
import resource
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.conftest import SHARED, Start
from tests.faults.nodes import KEY, manage
from tests.support.servers import free_port

pytestmark = pytest.mark.fault


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """Return the sentence."""
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    assert "ready" not in done.stdout
    return done.stderr.strip().splitlines()[-1]


async def test_a_second_server_on_the_same_folder_is_refused(start: Start) -> None:
    node = await start()
    sentence = refusal(manage(node.folder, "run"))
    assert f"Another server (process {node.pid}) already uses {node.folder}." in sentence
    assert "DATA_DIR" in sentence
    for content in (
        "",
        "0x1",
        f"{'9' * 19} {socket.gethostname()}",
        f"999999999 {socket.gethostname()}",
        f"{node.pid} elsewhere",
    ):
        (node.folder / "lock").write_text(content)
        assert f"Another server already uses {node.folder}." in refusal(manage(node.folder, "run"))


def test_a_development_server_is_not_opened_to_the_network(tmp_path: Path) -> None:
    sentence = refusal(manage(tmp_path, "run", HOST="0.0.0.0"))  # noqa: S104  # it is refused
    for setting in ("HOST=0.0.0.0", "SECRET_KEY", "ALLOWED_HOSTS"):
        assert setting in sentence


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = manage(tmp_path, "run", PORT=port)
    assert f"Cannot listen at http://127.0.0.1:{port}; the line above has the reason." in refusal(done)
    assert "address already in use" in done.stderr.strip().splitlines()[-2]


@pytest.mark.parametrize("option", [[], ["--noreload"]], ids=["with its reloader", "alone"])
def test_a_development_server_without_its_port_ends_at_once(tmp_path: Path, option: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = manage(tmp_path, "runserver", *option, PORT=port)
    assert f"Cannot listen at http://127.0.0.1:{port}; Address already in use." in refusal(done)


def test_an_address_of_another_machine_is_named(tmp_path: Path) -> None:
    settings = {"HOST": "203.0.113.7", **SHARED}
    assert manage(tmp_path, "migrate", "-v0", **settings).returncode == 0
    done = manage(tmp_path, "serve", **settings)
    assert "Cannot listen at http://203.0.113.7:8000; the line above has the reason." in refusal(done)
    assert "set HOST" in refusal(done)
    assert "address" in done.stderr.strip().splitlines()[-2]


def test_a_mistake_in_the_definition_of_an_agent_is_named_with_file_and_line(tmp_path: Path) -> None:
    module = tmp_path / "broken_agents.py"
    module.write_text("from a2a.agents import agent\n\n\n@agent(timeot=3)\nasync def broken(run):\n    return 1\n")
    done = manage(tmp_path / "data", "run", A2A_AGENT_MODULES="broken_agents", PYTHONPATH=str(tmp_path))
    sentence = refusal(done)
    assert sentence.startswith(f"{module}:4: ")
    assert "did you mean timeout=" in sentence


def test_an_import_that_fails_in_a_module_of_agents_is_one_line(tmp_path: Path) -> None:
    module = tmp_path / "imports_nothing.py"
    module.write_text("from a2a import agent\nimport no_such_package\n")
    settings = {"A2A_AGENT_MODULES": "imports_nothing", "PYTHONPATH": str(tmp_path)}
    done = manage(tmp_path / "data", "run", **settings)
    said = "the import ended with ModuleNotFoundError: No module named 'no_such_package'"
    remedy = "if it is a package, list it in requirements-agents.txt and run make install"
    assert refusal(done) == f"{module}:2: {said}; {remedy}"
    assert "most recent call last" in manage(tmp_path / "data", "check", "--traceback", **settings).stderr


def test_a_module_of_agents_that_is_not_there_is_named(tmp_path: Path) -> None:
    sentence = refusal(manage(tmp_path, "run", A2A_AGENT_MODULES="nowhere.agents"))
    assert sentence.startswith("A2A_AGENT_MODULES: there is no module nowhere.agents beside manage.py")
    assert not sentence.endswith(".py")
    for path in ("hello.py", "./hello.py"):
        sentence = refusal(manage(tmp_path, "run", A2A_AGENT_MODULES=path))
        assert sentence.startswith(f"A2A_AGENT_MODULES: there is no module {path} beside manage.py or in PYTHONPATH; ")
        assert sentence.endswith("; write it without .py")


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "."])
def test_an_address_that_is_none_is_named(tmp_path: Path, host: str) -> None:
    assert refusal(manage(tmp_path, "serve", HOST=host)).startswith("HOST must be an address or a name")


def test_an_odd_setting_is_named(tmp_path: Path) -> None:
    assert "A2A_LEASE_SECONDS must be a number" in refusal(manage(tmp_path, "run", A2A_LEASE_SECONDS="soon"))


def test_a_port_that_no_machine_has_is_named(tmp_path: Path) -> None:
    assert refusal(manage(tmp_path, "run", PORT="8000.7")) == "PORT must be a whole number, not '8000.7'"
    assert refusal(manage(tmp_path, "run", PORT="99999")) == "PORT must be at most 65535, not '99999'"
    assert refusal(manage(tmp_path, "run", PORT="0")) == "PORT must be at least 1, not '0'"


def test_a_limit_of_millions_is_named_in_digits(tmp_path: Path) -> None:
    sentence = "A2A_BODIES_BYTES must be at least 16000000, not '5'"
    assert refusal(manage(tmp_path, "run", A2A_BODIES_BYTES="5")) == sentence


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("foo://tina:hunter2@host/x", "DATABASE_URL must begin with postgres:// or sqlite:///, not 'foo'"),
        ("mysql://tina:hunter2@host/x", "DATABASE_URL must begin with postgres:// or sqlite:///, not 'mysql'"),
        ("hunter2", "DATABASE_URL must begin with postgres:// or sqlite:///"),
        ("postgres://tina:hunter2#@host:x/x", "DATABASE_URL must be like postgres://user:password@host:5432/name; "),
        ("postgres://tina@host:hunter2/x", "DATABASE_URL must be like postgres://user:password@host:5432/name; "),
        ("postgres://[hunter2/x", "DATABASE_URL must be like postgres://user:password@host:5432/name; "),
    ],
)
def test_a_database_that_is_no_address_of_one_is_named_without_its_password(
    tmp_path: Path, url: str, sentence: str
) -> None:
    done = manage(tmp_path, "tasks", "list", DATABASE_URL=url)
    assert refusal(done).startswith(sentence)
    assert "hunter2" not in done.stderr


def test_a_level_of_logging_that_there_is_not_is_named(tmp_path: Path) -> None:
    for level in ("LOUD", "NOTSET"):  # logging itself knows the second
        sentence = refusal(manage(tmp_path, "run", LOG_LEVEL=level.lower()))
        assert sentence == f"LOG_LEVEL must be DEBUG, INFO, WARNING, ERROR or CRITICAL, not {level!r}"


@pytest.mark.parametrize("secret", [{}, SHARED], ids=["development", "production"])
@pytest.mark.parametrize("command", [("run",), ("migrate",), ("tasks", "list")], ids=" ".join)
def test_a_data_folder_that_cannot_be_made_is_named(
    tmp_path: Path, command: tuple[str, ...], secret: dict[str, str]
) -> None:
    (tmp_path / "file").touch()
    sentence = refusal(manage(tmp_path / "file" / "data", *command, **secret))
    assert sentence == f"DATA_DIR: cannot make the folder {tmp_path}/file/data: Not a directory"


def test_a_secret_that_cannot_be_kept_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret.key").mkdir()
    sentence = refusal(manage(tmp_path, "run"))
    assert sentence == f"DATA_DIR: cannot keep {tmp_path}/secret.key: Is a directory"


PRODUCTION = {"CELERY_BROKER_URL": "redis://127.0.0.1:1/0", "REDIS_URL": "redis://127.0.0.1:1/0"}
COMMANDS = {
    "serve": ("serve",),
    "tasks": ("tasks", "list"),
    "exchanges": ("exchanges", "7"),
    "deliveries": ("deliveries", "retry", "7"),
    "keys": ("a2a", "keys", "create", "somebody"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_database_that_was_never_migrated_is_named(tmp_path: Path, command: tuple[str, ...]) -> None:
    sentence = refusal(manage(tmp_path, *command))
    assert re.fullmatch(r"CommandError: The database \S+\.sqlite3 is empty: no server has used it yet\. .*", sentence)
    assert sentence.endswith("Set DATA_DIR to that of your server, start a server, or run manage.py migrate.")
    assert str(tmp_path) in sentence


def test_a_database_of_an_earlier_version_is_to_be_migrated(tmp_path: Path) -> None:
    assert manage(tmp_path, "migrate", "contenttypes").returncode == 0
    lacks = r"CommandError: The database \S+\.sqlite3 lacks \d\d migrations: run manage\.py migrate first\."
    assert re.fullmatch(lacks, refusal(manage(tmp_path, "tasks", "list")))


def test_a_worker_names_a_database_that_was_never_migrated(tmp_path: Path, empty_postgres: str) -> None:
    assert "migrations: run manage.py migrate first." in refusal(
        manage(tmp_path, "worker", DATABASE_URL=empty_postgres, **PRODUCTION)
    )


def test_a_key_for_cards_needs_no_database(tmp_path: Path) -> None:
    assert manage(tmp_path, "a2a", "cardkey").returncode == 0


@pytest.mark.parametrize("command", [("migrate",), ("run",), ("worker",), *COMMANDS.values()], ids=" ".join)
def test_a_database_that_is_away_is_named_without_its_password(tmp_path: Path, command: tuple[str, ...]) -> None:
    place = f"127.0.0.1:{free_port()}"
    others = {} if command == ("run",) else PRODUCTION
    done = manage(tmp_path, *command, DATABASE_URL=f"postgres://tina:hunter2@{place}/desk", **others)
    sentence = refusal(done)
    assert sentence.startswith(f"The database desk at {place} (DATABASE_URL) cannot be used: ")
    assert "refused" in sentence
    assert "hunter2" not in done.stderr + done.stdout


@pytest.mark.parametrize("options", ["[]", "{", "5", "location=/tmp"])
def test_options_of_the_storage_that_are_no_object_are_named(tmp_path: Path, options: str) -> None:
    sentence = refusal(manage(tmp_path, "run", A2A_FILE_STORAGE_OPTIONS=options))
    assert "A2A_FILE_STORAGE_OPTIONS must be a JSON object" in sentence


@pytest.mark.parametrize(
    "storage", [{"A2A_FILE_STORAGE": "nowhere.Storage"}, {"A2A_FILE_STORAGE_OPTIONS": '{"locatoin": "/tmp"}'}]
)
def test_a_storage_that_cannot_be_used_is_found_by_a_check(tmp_path: Path, storage: dict[str, str]) -> None:
    done = manage(tmp_path, "check", **storage)
    assert done.returncode == 1
    assert "a2a.E020" in done.stderr
    assert "A2A_FILE_STORAGE_OPTIONS" in done.stderr


@pytest.mark.parametrize(
    ("production", "named"),
    [
        (SHARED, "SECRET_KEY is set, which is for production"),
        ({"CELERY_BROKER_URL": "redis://127.0.0.1:1/0"}, "CELERY_BROKER_URL is set, which is for production"),
        ({"DATABASE_URL": "postgres://tina:hunter2@db.example/x"}, "names a database on another machine, db.example."),
    ],
)
def test_a_development_server_refuses_the_settings_of_production(
    tmp_path: Path, production: dict[str, str], named: str
) -> None:
    done = manage(tmp_path, "run", **production)
    sentence = refusal(done)
    assert named in sentence
    assert "manage.py serve" in sentence
    assert KEY not in done.stdout + done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert not (tmp_path / "api.key").exists()


UNSAFE = {
    "a2a.E030": {"DEBUG": "true"},
    "a2a.E031": {"ALLOWED_HOSTS": "*"},
    "a2a.E032": {"SECRET_KEY": "a" * 50},
    "a2a.E033": {"A2A_PUBLIC_URL": "http://desk.example"},
}


def test_unsafe_starts_are_refused(tmp_path: Path) -> None:
    settings = SHARED | {name: value for unsafe in UNSAFE.values() for name, value in unsafe.items()}
    done = manage(tmp_path, "serve", **settings)
    assert done.returncode == 1
    assert set(re.findall(r"a2a\.E\d+", done.stderr)) == set(UNSAFE)
    assert "a" * 50 not in done.stderr


def test_a_key_of_development_keeps_a_production_from_starting(tmp_path: Path) -> None:
    assert manage(tmp_path, "migrate", "-v0", **SHARED).returncode == 0
    made = "from tasks_app.callers import access; access.new_key('developer', name='development')"
    assert manage(tmp_path, "shell", "--no-imports", "-c", made, **SHARED).returncode == 0
    done = manage(tmp_path, "serve", **SHARED)
    assert done.returncode == 1
    assert "(a2a.E034) The API key 1, which a development server made and printed" in done.stderr
    assert manage(tmp_path, "a2a", "keys", "revoke", "1", **SHARED).returncode == 0
    again = manage(tmp_path, "check", "--deploy", "--database", "default", **SHARED)
    assert "a2a.E034" not in again.stderr


def test_the_settings_of_the_readme_pass_the_checks_of_a_deployment(tmp_path: Path, postgres: str) -> None:
    settings = {
        "DATABASE_URL": postgres,
        "CELERY_BROKER_URL": "redis://127.0.0.1:1/0",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "SECRET_KEY": SHARED["SECRET_KEY"] + ", web and worker",
        "ALLOWED_HOSTS": "agents.example.com",
        "A2A_PUBLIC_URL": "https://agents.example.com",
    }
    proxy = {"A2A_TRUST_FORWARDED": "x-forwarded", "A2A_TRUSTED_PROXIES": "10.0.0.1"}
    for more in ({}, proxy):
        done = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", **settings, **more)
        assert done.returncode == 0, done.stderr
        assert "no issues" in done.stdout


def rights(path: Path) -> int:
    """Return the mode of a file, without its kind."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_data_folder_is_closed_to_others_also_one_that_was_there(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        assert manage(tmp_path / "data", "migrate", "-v0").returncode == 0
        (tmp_path / "data").chmod(0o755)
        (tmp_path / "data" / "taskdesk.sqlite3").chmod(0o644)
        (tmp_path / "data" / "taskdesk.sqlite3-wal").touch(0o644)
        assert manage(tmp_path / "data", "tasks", "list").returncode == 0
        assert rights(tmp_path / "data") == 0o700
        assert {rights(path) & 0o077 for path in (tmp_path / "data").glob("taskdesk.sqlite3*")} == {0}
        (tmp_path / "others").mkdir()
        (tmp_path / "others" / "file").touch()
        assert "a2a.W005" in manage(tmp_path / "others", "check").stderr
        assert rights(tmp_path / "others") == 0o755
    finally:
        os.umask(before)


LOOKS = {
    # It examines the paths, and with them those of the operators' API, whose framework loads psycopg.
    "check": ("celery", "redis", "twisted"),
    "tasks list": ("celery", "redis", "httpx", "uvicorn", "psycopg", "tasks_app.admin", "tasks_app.operations"),
    "exchanges list": ("celery", "redis", "httpx", "uvicorn", "psycopg", "tasks_app.admin"),
    "deliveries list": ("celery", "redis", "uvicorn", "psycopg", "tasks_app.admin"),
    "a2a doctor": ("celery", "redis", "httpx", "uvicorn", "psycopg", "tasks_app.admin", "tasks_app.operations"),
    "a2a load": ("celery", "redis", "httpx", "uvicorn", "psycopg", "jwt", "tasks_app.admin", "tasks_app.operations"),
    "--help": ("celery", "redis", "httpx", "uvicorn", "psycopg", "tasks_app.admin", "tasks_app.operations"),
}
"""Commands that only look, and what they need not load: it takes longer than their work."""


@pytest.mark.parametrize(("words", "heavy"), LOOKS.items(), ids=LOOKS)
def test_a_command_that_only_looks_loads_little(
    desk: Path, words: str, heavy: tuple[str, ...], record_property: Callable[[str, object], None]
) -> None:
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = manage(desk, *words.split(), PYTHONPROFILEIMPORTTIME="1")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    record_property("seconds of CPU", round(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime, 2))
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    said = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert (done.returncode, said) == (0, [])
    assert "django.db.models" in loaded
    assert {name for name in loaded for other in heavy if f"{name}.".startswith(f"{other}.")} == set()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder with all tables."""
    folder = tmp_path_factory.mktemp("desk") / "data"
    assert manage(folder, "migrate", "-v0").returncode == 0
    return folder


def test_commands_that_look_do_not_repeat_the_warnings_of_a_start(tmp_path: Path, postgres: str) -> None:
    assert manage(tmp_path, "migrate", "-v0", DATABASE_URL=postgres).returncode == 0
    done = manage(tmp_path, "tasks", "list", DATABASE_URL=postgres)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
