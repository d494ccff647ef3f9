"""Settings of the workers of pytest-xdist, and which worker gets which test; a plugin, since pytest loads it before
Django reads its settings.

Each worker gets a data folder of its own: for its secret, its stored files and its SQLite test database. On PostgreSQL
pytest-django gives the test database of each worker a name of its own.
"""

import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.clients.environments import CLIENTS

NOT_TRIED = "NOT TRIED"
"""How the reason of a skipped test begins that is repeated at the end of a run."""

os.environ["A2A_ENV_FILE"] = ""  # tests go by their own settings
PLACES = {
    "fault": ("tests/faults", "tests/clients"),
    "clients": ("tests/clients",),
    "bench": ("tests/bench",),
    "browser": ("tests/browser",),
}
"""Where the tests of these markers are: their runs look nowhere else."""
SERVERS = ("server", "site", "world")
"""The fixtures that start a server once in a worker."""
CLIENT_TESTS, INSTALL_TESTS = "tests/clients/test_clients.py", "tests/clients/test_install.py"

HERE = Path(__file__).parent
# Helpers of tests assert too. To show the values that differ, pytest rewrites modules named before their import.
MODULES = [f"tests.{room.name}" for room in HERE.parent.iterdir() if room.is_dir() and room != HERE]
MODULES += [f"tests.support.{file.stem}" for file in HERE.iterdir() if file != Path(__file__)]
pytest.register_assert_rewrite(*(module for module in MODULES if module not in sys.modules))

if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ["DATA_DIR"] = str(Path(os.environ.get("DATA_DIR") or ".data").absolute() / "tests" / worker)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, and never look at the tests later: all ten thousand stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a test that its run would not find, and sort the others.

    Tests that take long begin first, or the others wait for them. Tests of one server come one after another, so that
    few workers start it: a worker gets tests in this order, and gives the end of its list to one that has none left.
    """
    for item in items:
        place = item.path.relative_to(config.rootpath).as_posix()
        for marker, folders in PLACES.items():
            if item.get_closest_marker(marker) and not place.startswith(tuple(f"{folder}/" for folder in folders)):
                raise pytest.UsageError(f"{item.nodeid} is a test of {marker}, which must be in {' or '.join(folders)}")
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, server_of(item)))


def server_of(item: pytest.Item) -> int:
    """Return the number of the server that the test needs, which a worker starts once; the highest if it needs none."""
    names = getattr(item, "fixturenames", ())
    return next((number for number, name in enumerate(SERVERS) if name in names), len(SERVERS))


def group(test: str) -> str:
    """Return the name of what a test shares with others, by its id: their client or their clone; else the id.

    A client goes through its steps once in a worker, and a clone is installed once.
    """
    path, _, name = test.partition("::")
    names = [client.name for client in CLIENTS if path == CLIENT_TESTS and client.name in name]
    return max(names, key=len) if names else path if path == INSTALL_TESTS else test


class Groups(LoadScopeScheduling):
    """A schedule that gives a worker the next test, or all tests of the next group, when it has next to none left.

    That of xdist for its marker `xdist_group` writes the group into the ids of tests, which pytest 9.2 ignores.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Groups | None:
    return Groups(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what this machine could not try, and why, instead of only counting it."""
    skipped = (report.longrepr for report in terminalreporter.stats.get("skipped", []))
    reasons = {str(longrepr[2]).removeprefix("Skipped: ") for longrepr in skipped if isinstance(longrepr, tuple | list)}
    for reason in sorted(reason for reason in reasons if reason.startswith(NOT_TRIED)):
        terminalreporter.write_line(reason)
