"""``python -m tests [ARGUMENTS OF PYTEST]``: everything but the long fault tests, in the order that takes least time.

Fault tests mostly wait for processes. Beside them, with what they leave of the machine, run all others one after
another: those that need only this process, on SQLite and on PostgreSQL, then those of the official clients and of the
bench. Each run has several workers of pytest-xdist, each with a database and a data folder of its own.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, NamedTuple

from tests.workers import PLACES

PYTEST = [sys.executable, "-m", "pytest"]
POSTGRES = [sys.executable, "-m", "tests.servers", *PYTEST, "-p", "no:cacheprovider"]
PROCESSES = " or ".join(PLACES)
CORES = os.cpu_count() or 1
BUSY = ["-n", str(CORES)]
"""For tests that keep a core busy."""
WAITING = ["-n", str(2 * CORES), "--dist", "worksteal"]
"""For tests that mostly wait for processes. With three workers a core their deadlines come close."""
GROUPED = ["-n", str(CORES), "--dist", "loadgroup"]
"""For tests of which some share what is slow to make."""
NICENESS = 5
"""Of the tests beside the fault tests: a promise in seconds is kept by processes that are given their time."""
NOTHING_COLLECTED = 5
"""Fine where the arguments chose tests of another kind."""


class Run(NamedTuple):
    """A run of pytest."""

    name: str
    command: list[str]
    niceness: int = NICENESS


def of(*markers: str) -> list[str]:
    """Arguments for the tests of these markers. Each worker collects by itself: elsewhere it would take seconds."""
    folders = sorted({folder for marker in markers for folder in PLACES[marker]})
    return ["-o", f"testpaths={' '.join(folders)}", "-m", " or ".join(markers)]


FAULTS = Run(
    "Faults", [*PYTEST, "-p", "no:cacheprovider", *WAITING, *of("fault"), "-m", "fault and not long"], niceness=0
)
OTHERS = [
    Run("SQLite", [*PYTEST, *BUSY, "-m", f"not ({PROCESSES})"]),
    Run("PostgreSQL", [*POSTGRES, *BUSY, "-m", f"storage and not ({PROCESSES})"]),
    Run("Official clients, bench", [*PYTEST, *GROUPED, *of("clients", "bench")]),
]


def start(run: Run, folder: Path, arguments: list[str], log: IO[bytes] | None = None) -> "subprocess.Popen[bytes]":
    """Start it, with a data folder of its own; its output goes to the log, or is seen at once."""
    command = ["nice", "-n", str(run.niceness), *run.command, *arguments]
    environment = os.environ | {"DATA_DIR": str(folder / run.name)}
    return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    since = time.monotonic()
    codes = []
    with tempfile.TemporaryDirectory(prefix="taskdesk-tests-") as place:
        folder = Path(place)
        log = folder / "log"
        with log.open("wb") as output, start(FAULTS, folder, arguments, output) as faults:
            for run in OTHERS:
                say(f"\n{run.name}:\n")
                codes.append(start(run, folder, arguments).wait())
                say(f"{time.monotonic() - since:.0f} s since the start\n")
            codes.append(faults.wait())
        say(f"\n{FAULTS.name}:\n{log.read_text(encoding='utf-8', errors='replace')}")
        say(f"{time.monotonic() - since:.0f} s in all\n")
    if arguments and any(code == 0 for code in codes):
        codes = [code for code in codes if code != NOTHING_COLLECTED]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
