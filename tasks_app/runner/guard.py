"""The fork server as the guard of the processes that it forks. It alone imports this module.

The import keeps signals to a whole process group or control group from ending the server. The server ends when its
worker does, and then kills the agents that are left with all that they have started.
"""

import atexit
import contextlib
import os
import signal
from pathlib import Path

from tasks_app.runner import children
from tasks_app.runner.offspring import kill_offspring, start_of

__all__ = ["children"]


def kill_children() -> None:
    """Kill each child with all that it has started, on Linux. Elsewhere a child does so at the end of its pipe."""
    with contextlib.suppress(OSError):  # The system has no such file.
        for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split():
            kill_offspring(int(pid), start_of(int(pid)))


os.setsid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
atexit.register(kill_children)
