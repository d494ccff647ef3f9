"""``python -m tests [ARGUMENTS OF PYTEST]``: everything, in the order in which it takes least time.

What needs only this process runs on SQLite and, beside it, on PostgreSQL. After that comes what starts processes: those
that are hurt, and beside them those that talk to the official clients.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PYTEST = [sys.executable, "-m", "pytest"]
POSTGRES = [sys.executable, "-m", "tests.servers", *PYTEST, "-p", "no:cacheprovider"]
PROCESSES = "fault or clients or bench"
NOTHING_COLLECTED = 5
"""Fine where the arguments chose tests of another kind."""


def together(first: list[str], name: str, second: list[str]) -> list[int]:
    """Runs both at the same time; the output of the second, which has a data folder of its own, comes at the end."""
    with tempfile.TemporaryDirectory(prefix="taskdesk-tests-") as folder:
        output = Path(folder) / "log"
        with output.open("wb") as log:
            beside = subprocess.Popen(second, stdout=log, stderr=log, env=os.environ | {"DATA_DIR": f"{folder}/data"})
            codes = [subprocess.call(first), beside.wait()]
        sys.stdout.write(f"\n{name}:\n{output.read_text(encoding='utf-8')}\n")
        sys.stdout.flush()
    return codes


def main(arguments: list[str]) -> int:
    codes = together(
        [*PYTEST, "-m", f"not ({PROCESSES})", *arguments],
        "On PostgreSQL",
        [*POSTGRES, "-m", f"storage and not ({PROCESSES})", *arguments],
    )
    codes += together(
        [*PYTEST, "-m", "fault", *arguments],
        "Official clients, bench",
        [*PYTEST, "-m", "clients or bench", *arguments],
    )
    if arguments and any(code == 0 for code in codes):
        codes = [code for code in codes if code != NOTHING_COLLECTED]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
