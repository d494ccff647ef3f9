"""``python -m tests [ARGUMENTS OF PYTEST]``: everything, in the order in which it takes least time.

What needs only this process runs on SQLite and, beside it, on PostgreSQL; what kills processes, or waits for the
official clients, runs after that and alone, for it has deadlines.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PYTEST = [sys.executable, "-m", "pytest"]
POSTGRES = [sys.executable, "-m", "tests.servers", *PYTEST, "-p", "no:cacheprovider"]
ALONE = "fault or clients or bench"
NOTHING_COLLECTED = 5
"""Fine where the arguments chose tests of another kind."""


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="taskdesk-tests-") as folder:
        output = Path(folder) / "postgres.log"
        apart = os.environ | {"DATA_DIR": f"{folder}/data"}
        with output.open("wb") as log:
            chosen = [*POSTGRES, "-m", f"storage and not ({ALONE})", *arguments]
            beside = subprocess.Popen(chosen, stdout=log, stderr=log, env=apart)
            codes = [subprocess.call([*PYTEST, "-m", f"not ({ALONE})", *arguments])]
            codes.append(beside.wait())
        sys.stdout.write(f"\nOn PostgreSQL:\n{output.read_text(encoding='utf-8')}\n")
        sys.stdout.flush()
    codes.append(subprocess.call([*PYTEST, "-m", ALONE, *arguments]))
    if arguments and any(code == 0 for code in codes):
        codes = [code for code in codes if code != NOTHING_COLLECTED]
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
