"""``python -m tests [ARGUMENTS OF PYTEST]``: everything but the long fault tests, in the order that takes least time.

Tests with real processes mostly wait: fault tests, those of the official clients, and of the bench. Beside them, with
what they leave of the machine, run all others: those that need only this process, on SQLite and then on PostgreSQL.
Each run has several workers of pytest-xdist, each with a database and a data folder of its own.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, NamedTuple

from tests.browser import chromium
from tests.support.workers import PLACES

PYTEST = [sys.executable, "-m", "pytest"]
POSTGRES = [sys.executable, "-m", "tests.support.servers", *PYTEST, "-p", "no:cacheprovider"]
PROCESSES = " or ".join(PLACES)
CORES = os.cpu_count() or 1
BUSY = ["-n", str(CORES + 1), "--dist", "worksteal"]
"""For tests that keep a core busy, but for a third of the time. Each worker has neighbours in the list of tests, which
often need one server."""
WAITING = ["-n", str(2 * CORES), "--dist", "loadgroup", "--no-loadscope-reorder"]
"""For tests that mostly wait for processes. With three workers a core their deadlines come close."""
NICENESS = 5
"""The nice value of the other tests: processes under test keep promises in seconds, so they get the cores first."""
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""A variable of many containers. With it each of a thousand processes would compile the project anew."""
NOTHING_COLLECTED = 5
"""Fine where the arguments chose tests of another kind."""


class Run(NamedTuple):
    """A run of pytest."""

    name: str
    command: list[str]
    niceness: int = NICENESS


def folders(*markers: str) -> list[str]:
    """Return the arguments for the folders of these tests. Each worker collects, which takes seconds elsewhere."""
    return ["-o", f"testpaths={' '.join(sorted({folder for marker in markers for folder in PLACES[marker]}))}"]


BROWSER = ("browser",) if chromium.installed() else ()
WITH_PROCESSES = Run(
    "Faults, official clients, browser, bench",
    [
        *(*PYTEST, *WAITING, *folders("fault", "clients", "bench", *BROWSER), "-m"),
        " or ".join(["(fault and not long)", "clients", "bench", *(f"({marker} and not long)" for marker in BROWSER)]),
    ],
    niceness=0,
)
OTHERS = [
    Run("SQLite", [*PYTEST, "-p", "no:cacheprovider", *BUSY, "-m", f"not ({PROCESSES})"]),
    Run("PostgreSQL", [*POSTGRES, *BUSY, "-m", f"storage and not ({PROCESSES})"]),
]


def start(run: Run, folder: Path, arguments: list[str], log: IO[bytes] | None = None) -> "subprocess.Popen[bytes]":
    """Start it, with a data folder of its own; its output goes to the log, or is seen at once."""
    command = ["nice", "-n", str(run.niceness), *run.command, *arguments]
    environment = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
    environment["DATA_DIR"] = str(folder / run.name)
    return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    since = time.monotonic()
    codes = []
    if not BROWSER:
        say("No Chromium is installed, so no test opens a browser. `make browser` fetches one.\n")
    with tempfile.TemporaryDirectory(prefix="taskdesk-tests-") as place:
        folder = Path(place)
        log = folder / "log"
        with log.open("wb") as output, start(WITH_PROCESSES, folder, arguments, output) as first:
            for run in OTHERS:
                say(f"\n{run.name}:\n")
                codes.append(start(run, folder, arguments).wait())
                say(f"{time.monotonic() - since:.0f} s since the start\n")
            codes.append(first.wait())
        say(f"\n{WITH_PROCESSES.name}:\n{log.read_text(encoding='utf-8', errors='replace')}")
        say(f"{time.monotonic() - since:.0f} s in all\n")
    if arguments and any(code == 0 for code in codes):
        codes = [code for code in codes if code != NOTHING_COLLECTED]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
