"""Large blocks of memory: back to the system as soon as they are free."""

import subprocess
import sys
import textwrap

import pytest

from tasks_app.process.memory import return_large_blocks
from tests.support.servers import COMMAND_SECONDS


def grown(*, prepared: bool) -> int:
    """Return by how many megabytes a new process is larger after work with blocks of a few megabytes than before."""
    program = f"""
        import resource
        from pathlib import Path
        from tasks_app.process.memory import return_large_blocks

        def resident():
            return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

        {"return_large_blocks()" if prepared else ""}
        before = resident()
        # Small things between large ones keep the top of the heap from shrinking, as the work of a server does.
        kept = []
        for _ in range(5):
            large = []
            for number in range(8):
                large.append(b"x" * 4_000_000)
                kept.append(b"x" * 1_000 * (number + 1))
            del large
        print((resident() - before) // 1_000_000)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        timeout=COMMAND_SECONDS,
    )
    return int(done.stdout)


def test_the_memory_of_large_answers_is_given_back() -> None:
    if not return_large_blocks():
        pytest.skip("this C library always gives large blocks back")
    assert grown(prepared=True) < 4 < grown(prepared=False)
