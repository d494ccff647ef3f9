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
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ["DATA_DIR"] = str(Path(os.environ.get("DATA_DIR") or ".data").absolute() / "tests" / worker)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what this machine could not try, and why, instead of only counting it."""
    skipped = (report.longrepr for report in terminalreporter.stats.get("skipped", []))
    reasons = {str(longrepr[2]).removeprefix("Skipped: ") for longrepr in skipped if isinstance(longrepr, tuple | list)}
    for reason in sorted(reason for reason in reasons if reason.startswith(NOT_TRIED)):
        terminalreporter.write_line(reason)
