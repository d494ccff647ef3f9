"""Commands whose output has no room end with a sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers import COMMAND_SECONDS

ROOT = Path(__file__).resolve().parent.parent
FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is always full")
def test_an_output_without_room_is_a_sentence_and_no_traceback(tmp_path: Path) -> None:
    """An export to a full disk ends with exit code 1 and says that the file is not complete."""
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    command = [sys.executable, "manage.py", "a2a", "reference", "settings"]
    with FULL.open("w") as full:
        done = subprocess.run(
            command,
            check=False,
            cwd=ROOT,
            env=environment | {"DATA_DIR": str(tmp_path)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=COMMAND_SECONDS,
        )
    assert done.returncode == 1
    assert done.stderr == "The output is not complete: it cannot be written (No space left on device).\n"
