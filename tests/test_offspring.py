"""The processes that an agent has started are killed by their session, and a number that was given again harms none."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tasks_app.runner.offspring import kill_offspring, start_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc")

LEADER = """
import subprocess
print(subprocess.Popen(["/bin/sleep", "60"], process_group=0).pid, flush=True)
input()
"""


@pytest.fixture
def leader() -> Iterator["subprocess.Popen[str]"]:
    """Give a process with a session of its own, which prints the id of a program in another process group."""
    command = [sys.executable, "-ISc", LEADER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, start_new_session=True, text=True, stdin=pipe, stdout=pipe) as process:
        started = start_of(process.pid)
        yield process
        process.kill()
        kill_offspring(process.pid, started)


def program_of(leader: "subprocess.Popen[str]") -> int:
    assert leader.stdout
    return int(leader.stdout.readline())


def has_ended(leader: "subprocess.Popen[str]") -> bool:
    """Return whether all processes that can write to the pipe of the leader have ended."""
    assert leader.stdout
    return leader.stdout.read() == ""


def test_a_program_with_a_group_of_its_own_is_killed_with_its_leader(leader: "subprocess.Popen[str]") -> None:
    assert os.getpgid(program_of(leader)) != leader.pid
    kill_offspring(leader.pid, start_of(leader.pid))
    assert leader.wait(10) == -signal.SIGKILL
    assert has_ended(leader)


def test_a_program_is_killed_after_the_end_of_its_leader(leader: "subprocess.Popen[str]") -> None:
    program, started = program_of(leader), start_of(leader.pid)
    leader.kill()
    leader.wait(10)
    assert start_of(program)
    kill_offspring(leader.pid, started)
    assert has_ended(leader)


def test_a_process_that_got_the_id_of_a_leader_later_is_left_alone(leader: "subprocess.Popen[str]") -> None:
    program = program_of(leader)
    kill_offspring(leader.pid, start_of(leader.pid) - 1)
    assert leader.poll() is None
    assert start_of(program)


def test_without_a_process_nothing_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, _: killed.append(group))
    kill_offspring(0, 0)
    assert killed == []
