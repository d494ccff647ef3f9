"""The two processes of a development server: a parent, and the server, which ends when code is edited and starts again.

Django's own parent kills the server a quarter of a second after Ctrl-C, so running agents would have no grace.
"""

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from django.utils import autoreload

from tasks_app.runner.fork_server import leave

log = logging.getLogger(__name__)
SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})
RELOAD = 3
"""The exit code of a server whose code was edited, as Django's reloader sets it."""
TOGETHER = 0.5
"""Seconds within which a second signal counts as the first one. A terminal tells both processes, and the parent passes
the signal on."""


def is_server() -> bool:
    """Return whether this process is the server. Otherwise it is the parent."""
    return os.environ.get(autoreload.DJANGO_AUTORELOAD_ENV) == "true"


def supervise() -> int:
    """Start the server, and again after each reload. Pass SIGINT and SIGTERM on, wait for its end, and return its exit
    code."""
    orders: list[int] = []
    server: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _: FrameType | None) -> None:
        orders.append(number)
        if server is not None:
            server.send_signal(number)

    _obey(pass_on)
    environment = os.environ | {autoreload.DJANGO_AUTORELOAD_ENV: "true"}
    while True:
        # The server inherits the mask, and hears of a signal once it has loaded what handles it. Python itself would
        # print a traceback. See config/manage.py.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        server = subprocess.Popen(autoreload.get_child_arguments(), env=environment, close_fds=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        code = server.wait()
        if orders or code != RELOAD:
            return code if code >= 0 else 128 - code


class ReloadingServer:
    """Runs a function in a thread of the server's process until a signal comes or code is edited."""

    def __init__(self) -> None:
        self.told_at: float | None = None
        self.is_stopping = False

    def run(self, serve: Callable[..., None], **options: Any) -> int:
        """Return the exit code once the function is to end. From then on a signal raises nothing.

        A second signal ends the process at once.
        """
        _obey(self._hear)
        code = 0
        try:
            try:
                autoreload.start_django(autoreload.get_reloader(), serve, **options)
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else 1
            self.is_stopping = True
        except KeyboardInterrupt:
            self.is_stopping = True
        return code

    def _hear(self, number: int, _: FrameType | None) -> None:
        now = time.monotonic()
        if self.told_at is None:
            self.told_at = now
            if not self.is_stopping:
                raise KeyboardInterrupt
        elif now > self.told_at + TOGETHER:
            log.warning("%s again: leaving at once", signal.Signals(number).name)
            leave(1)


def _obey(handler: Callable[[int, FrameType | None], None]) -> None:
    """Call the handler at each signal. What a shell runs in the background ignores SIGINT, and goes on to do so."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
