"""``python -m tests.fuzz``: look for faults with random calls for FUZZ_SECONDS, five minutes unless it is set.

It looks on SQLite and on PostgreSQL. A failure prints its seed, and its call as a command.
"""

import os
import subprocess
import sys

PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--capture=sys", "--show-capture=no", "tests/fuzz"]
POSTGRES = [sys.executable, "-m", "tests.support.servers", *PYTEST, "-m", "storage"]
TESTS = 10
"""Runs of fuzz tests: six on SQLite, and the four of them with the mark `storage` on PostgreSQL."""


def main(arguments: list[str]) -> int:
    seconds = float(os.environ.get("FUZZ_SECONDS") or "300")
    environment = os.environ | {"FUZZ_SECONDS": f"{seconds / TESTS:.3f}", "A2A_LOG_CALLS": "no", "LOG_LEVEL": "ERROR"}
    codes = [
        subprocess.run([*line, *arguments], env=environment, check=False).returncode for line in (PYTEST, POSTGRES)
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
