"""The server that forks the processes of isolated agents. It loads Django and all agents once, so that a child starts
within milliseconds."""

import contextlib
import logging
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from multiprocessing import forkserver, resource_tracker
from multiprocessing.util import get_temp_dir
from typing import Any, NoReturn

from tasks_app.hints import hints

log = logging.getLogger(__name__)
PAUSE = 5.0
"""Seconds after which a process that could not start a child tries again."""
CONTEXT = multiprocessing.get_context("forkserver")
_starting = threading.Lock()
_warming = threading.Lock()
_folders: dict[int, str] = {}
"""The folder that Python has made for the socket, by the process that started the server. A fork starts its own."""
warm = threading.Event()
"""Set once a child starts within milliseconds. Before that no such task is claimed: loading would use its timeout."""
unable = threading.Event()
"""Set while this process cannot start children."""


def start_server() -> None:
    """Start the server unless it is there."""
    with _starting:
        CONTEXT.set_forkserver_preload(["tasks_app.runner.guard"])
        resource_tracker.ensure_running()  # first, because this changes the mask
        # A terminal tells all processes of Ctrl-C. The server ignores it once it runs. While it starts, the mask that
        # it inherits keeps Python from a traceback.
        former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
        _folders[os.getpid()] = get_temp_dir()
    wake_server()


def wake_server() -> None:
    """Have the server go on if one of its children, an agent, has sent it SIGSTOP.

    While it is stopped, no child starts, and none is known to have ended.
    """
    server: Any = forkserver
    if (pid := server._forkserver._forkserver_pid) is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def leave(code: int) -> NoReturn:
    """End the process at once. A normal exit would wait for the threads of sync agents, which cannot be stopped.

    Python then removes no folder of a fork server, so this does. The server needs it only to start children, and ends
    by itself when it loses its pipe to this process.
    """
    if folder := _folders.get(os.getpid()):
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(code)


def finish(code: int) -> NoReturn:
    """Write out what was printed and logged, and end the process as `leave` does."""
    sys.stdout.flush()
    logging.shutdown()
    leave(code)


def warm_up() -> None:
    """Start the server, wait until a child has started and ended, and set `warm`. Try until that succeeds."""
    if not _warming.acquire(blocking=False):
        return
    try:
        while not _starts_child():
            unable.set()
            time.sleep(PAUSE)
    finally:
        _warming.release()
    unable.clear()
    warm.set()
    hints.offer()


def cool_down() -> None:
    """Have no task of an isolated agent claimed until a child starts again. Called when a child failed to start."""
    unable.set()
    warm.clear()
    with contextlib.suppress(RuntimeError):  # There is no room for a thread either. The runner tries again.
        threading.Thread(target=warm_up, name="warm-up", daemon=True).start()


def _starts_child() -> bool:
    """Return whether a child can be started. The server forks only when everything is loaded."""
    try:
        start_server()
        first = CONTEXT.Process(target=os.getpid, name="warm-up")
        first.start()
        first.join()
        if first.exitcode:
            raise RuntimeError(f"the first process ended with exit code {first.exitcode}")
    except Exception:
        log.exception("no process for an isolated agent can be started here; the next try is in %g s", PAUSE)
        return False
    return True
