"""Tests that are killed: the processes that they started end with them."""

import select
import signal
import subprocess
import sys
from os import environ, pidfd_open
from pathlib import Path

import pytest

from tests.faults.forks import ROOT
from tests.support.servers import PATIENCE

pytestmark = pytest.mark.fault
TESTS = """
import sys, time
from pathlib import Path
from tests.faults import forks, nodes
from tests.support import servers

with open("/dev/null", "wb") as nothing:
    for more in ({}, {"PYTHONUTF8": "1"}):
        settings = nodes.environment(Path(sys.argv[1]), **more)
        command = nodes.command("shell", "--no-imports", "-c", "import time; time.sleep(600)")
        print(forks.launch(command, settings, nothing, nothing).pid, flush=True)
print(servers.launch_redis(servers.free_port()).pid, flush=True)
time.sleep(600)
"""
"""Tests with a fork, a process that is started anew, and a server."""


def test_processes_of_killed_tests_end_with_them(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TESTS, str(tmp_path)], cwd=ROOT, env=environ, stdout=subprocess.PIPE
    ) as tests:
        assert tests.stdout
        started = [pidfd_open(int(tests.stdout.readline())) for _ in range(3)]
        tests.send_signal(signal.SIGKILL)
    for process in started:
        assert select.select([process], [], [], PATIENCE)[0], "it goes on"
