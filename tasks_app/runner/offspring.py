"""All that the process of an agent has started: the members of its session, in whatever process group they are."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROCESSES = Path("/proc")
"""The processes of this system, on Linux."""
ROUNDS = 10
"""How often new process groups are looked for, at most."""
DEAD = "ZX"
"""States of a process that has ended, of which only the exit code is left."""


class Status(NamedTuple):
    """A process as the kernel describes it: proc_pid_stat(5)."""

    pid: int
    state: str
    group: int
    session: int
    started: int
    """The clock ticks from the start of the system to that of the process."""


def start_of(pid: int) -> int:
    """Return when a process was started, which tells it from later processes of the same id; 0 if that is unknown."""
    status = _read(PROCESSES / str(pid) / "stat")
    return status.started if status else 0


def kill_offspring(leader: int, started: int) -> None:
    """Kill every process of the session of a leader that was started at that time, except the group of this process.

    The leader may have ended. The kernel gives its id to no other process while its session has members, so if another
    process has the id by now, the session is empty. On other systems only the process group of the leader is killed.
    """
    if leader <= 0:
        return  # There is no process. The kernel would take 0 for the group of this one.
    if not (PROCESSES / "self" / "stat").exists():
        _kill_group(leader)
        return
    killed = {os.getpgrp()}
    for _ in range(ROUNDS):  # A process may have begun another group since the last look.
        groups = _groups_of(leader, started) - killed
        if not groups:
            return
        for group in groups:  # A group is killed at once, so that none of it can start another process meanwhile.
            _kill_group(group)
        killed |= groups


def _groups_of(leader: int, started: int) -> set[int]:
    """Return the process groups of the session that have living members."""
    members = []
    for status in _read_all():
        if status.pid == leader and status.started != started:
            return set()
        if status.session == leader and status.started >= started and status.state not in DEAD:
            members.append(status)
    return {member.group for member in members}


def _kill_group(group: int) -> None:
    with contextlib.suppress(OSError):  # Nothing is left.
        os.killpg(group, signal.SIGKILL)


def _read_all() -> Iterator[Status]:
    for folder in PROCESSES.iterdir():
        if folder.name.isdecimal() and (status := _read(folder / "stat")):
            yield status


def _read(path: Path) -> Status | None:
    """Read the status of a process; None if it has gone. Its name, in parentheses, may contain anything."""
    try:
        before, _, after = path.read_text(encoding="utf-8", errors="replace").rpartition(")")
    except OSError:
        return None
    fields = after.split()
    return Status(int(before.split()[0]), fields[0], int(fields[2]), int(fields[3]), int(fields[19]))
