"""Settings of the workers of pytest-xdist; a plugin, since pytest loads it before Django reads its settings.

Each worker gets a data folder of its own: for its secret, its stored files and its SQLite test database. On PostgreSQL
pytest-django gives the test database of each worker a name of its own.
"""

import os
from pathlib import Path

import pytest

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

if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ["DATA_DIR"] = str(Path(os.environ.get("DATA_DIR") or ".data").absolute() / "tests" / worker)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a test that its run would not find."""
    for item in items:
        place = item.path.relative_to(config.rootpath).as_posix()
        for marker, folders in PLACES.items():
            if item.get_closest_marker(marker) and not place.startswith(tuple(f"{folder}/" for folder in folders)):
                raise pytest.UsageError(f"{item.nodeid} is a test of {marker}, which must be in {' or '.join(folders)}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what this machine could not try, and why, instead of only counting it."""
    skipped = (report.longrepr for report in terminalreporter.stats.get("skipped", []))
    reasons = {str(longrepr[2]).removeprefix("Skipped: ") for longrepr in skipped if isinstance(longrepr, tuple | list)}
    for reason in sorted(reason for reason in reasons if reason.startswith(NOT_TRIED)):
        terminalreporter.write_line(reason)
