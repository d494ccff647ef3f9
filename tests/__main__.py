"""``python -m tests [ARGUMENTS OF PYTEST]``: everything but the long fault tests, in the order that takes least time.

Tests that need only this process run on SQLite and, beside it, on PostgreSQL. After them come the tests that start
processes: fault tests, and beside them those of the official clients and of the bench. Each run has several workers of
pytest-xdist, each with a database and a data folder of its own.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PYTEST = [sys.executable, "-m", "pytest"]
POSTGRES = [sys.executable, "-m", "tests.servers", *PYTEST, "-p", "no:cacheprovider"]
PROCESSES = "fault or clients or bench"
CORES = os.cpu_count() or 1
BUSY = ["-n", str(CORES)]
"""For tests that keep a core busy."""
WAITING = ["-n", str(2 * CORES), "--dist", "worksteal"]
"""For tests that mostly wait for processes. With three workers a core their deadlines come close."""
GROUPED = ["-n", str(CORES), "--dist", "loadgroup"]
"""For tests of which some share what is slow to make."""
NOTHING_COLLECTED = 5
"""Fine where the arguments chose tests of another kind."""


def together(first: list[str], name: str, second: list[str]) -> list[int]:
    """Run both at the same time, each with a data folder of its own; the second's output comes at the end."""
    with tempfile.TemporaryDirectory(prefix="taskdesk-tests-") as folder:
        output = Path(folder) / "log"
        own, others = (os.environ | {"DATA_DIR": f"{folder}/{place}"} for place in ("first", "second"))
        with output.open("wb") as log:
            beside = subprocess.Popen(second, stdout=log, stderr=log, env=others)
            codes = [subprocess.call(first, env=own), beside.wait()]
        sys.stdout.write(f"\n{name}:\n{output.read_text(encoding='utf-8')}\n")
        sys.stdout.flush()
    return codes


def main(arguments: list[str]) -> int:
    codes = together(
        [*PYTEST, *BUSY, "-m", f"not ({PROCESSES})", *arguments],
        "On PostgreSQL",
        [*POSTGRES, *BUSY, "-m", f"storage and not ({PROCESSES})", *arguments],
    )
    codes += together(
        [*PYTEST, *WAITING, "-m", "fault and not long", *arguments],
        "Official clients, bench",
        [*PYTEST, *GROUPED, "-m", "clients or bench", *arguments],
    )
    if arguments and any(code == 0 for code in codes):
        codes = [code for code in codes if code != NOTHING_COLLECTED]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
