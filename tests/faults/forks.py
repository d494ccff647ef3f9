"""Processes that run `manage.py`, forked by one that has imported the libraries: see starter.py."""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO

from tests.support.orphans import end_with_tests

ROOT = Path(__file__).resolve().parents[2]
SHIFTED = ROOT / "tests" / "faults" / "shifted.py"
SCRIPTS = {str(ROOT / "manage.py"), str(SHIFTED)}
"""The scripts that forks run."""
Process = subprocess.Popen[bytes]


class Fork(Process):
    """A process that is the child of the starter: as Popen shows a child of this process."""

    def __init__(self, starter: "Starter", pid: int) -> None:
        self.starter, self.pid, self.args = starter, pid, "manage.py"
        self.returncode: int | None = None
        self.descriptor = os.pidfd_open(pid)
        self.lock = threading.Lock()

    def poll(self) -> int | None:
        with self.lock:
            if self.returncode is None and self._ended(0):
                self.returncode = self.starter.reap(self.pid)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not self._ended(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def __del__(self) -> None:
        """Close the descriptor. Popen would warn of a process that was not waited for."""
        os.close(self.descriptor)

    def _ended(self, timeout: float | None) -> bool:
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        return bool(poll.poll(None if timeout is None else timeout * 1000))


class Starter:
    """The process that forks, which ends when this one does."""

    def __init__(self) -> None:
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.lock = threading.Lock()
        with theirs:
            command = [sys.executable, "-m", "tests.faults.starter", str(theirs.fileno())]
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        atexit.register(self.end)

    def end(self) -> None:
        self.channel.close()
        self.process.wait()

    def start(self, arguments: list[str], environment: Mapping[str, str], output: IO[bytes], errors: IO[bytes]) -> Fork:
        order = {"arguments": arguments, "environment": dict(environment)}
        files = [output.fileno(), errors.fileno()]
        with self.lock:
            socket.send_fds(self.channel, [json.dumps(order).encode()], files)
            return Fork(self, int(self.channel.recv(100)))

    def reap(self, pid: int) -> int:
        with self.lock:
            self.channel.send(json.dumps({"reap": pid}).encode())
            return int(self.channel.recv(100))


@cache
def starter() -> Starter:
    return Starter()


def launch(command: list[str], environment: Mapping[str, str], output: IO[bytes], errors: IO[bytes]) -> Process:
    """Start a command in a session of its own: a fork of the starter where that is the same as starting it anew."""
    python, *arguments = command
    # Python reads its own variables at its start alone, so a fork would not see others.
    own = {name for name in environment if name.startswith("PYTHON")} == {"PYTHONUNBUFFERED"}
    if python == sys.executable and arguments[0] in SCRIPTS and own:
        return starter().start(arguments, environment, output, errors)
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=True,
    )
    return end_with_tests(process)


def run(command: list[str], environment: Mapping[str, str], timeout: float) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself, and return what it printed."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = launch(command, environment, output, errors)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            raise
        return subprocess.CompletedProcess(command, code, _text(output), _text(errors))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()
