"""The end of processes whose tests were killed: a watcher sees the tests end, and kills what they have left.

The tests end their processes themselves where they can. A signal to pytest, or a limit of time around it, takes the
chance from them; what is left would load the machine while others test.
"""

import atexit
import os
import subprocess
import sys
from functools import cache

WATCH = """
import os, signal, sys
from contextlib import suppress
started = []
for line in sys.stdin:
    with suppress(ProcessLookupError):
        started.append(os.pidfd_open(int(line)))
for process in started:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(process, signal.SIGKILL)
"""
"""The watcher: it reads numbers of processes until the pipe ends, which it does with the process of the tests."""


def end_with_tests(process: "subprocess.Popen[bytes]") -> "subprocess.Popen[bytes]":
    """Have a process killed when this one has ended, however that came about."""
    os.write(_pipe(), b"%d\n" % process.pid)
    return process


@cache
def _pipe() -> int:
    line = [sys.executable, "-I", "-S", "-c", WATCH]
    watcher = subprocess.Popen(line, stdin=subprocess.PIPE, cwd="/", start_new_session=True)
    assert watcher.stdin
    atexit.register(watcher.communicate)  # it closes the pipe, and waits
    return watcher.stdin.fileno()
