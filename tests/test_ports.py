"""The ports of servers under test: processes of tests that come to the same one share none."""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT
from tests.support import servers

ASK = """
import sys
from itertools import count
from tests.support import servers
servers._places = count(int(sys.argv[1]))
print(servers.free_port())
"""


@pytest.fixture
def guards(monkeypatch: pytest.MonkeyPatch) -> Iterator[deque[int]]:
    """Give the guards of this test, beside those of the process."""
    guards: deque[int] = deque()
    monkeypatch.setattr(servers, "_guards", guards)
    yield guards
    for guard in guards:
        os.close(guard)


def port_of_another_process(first: int) -> int:
    """Return the free port of a process that begins to look at this one."""
    command = [sys.executable, "-c", ASK, str(servers.PORTS.index(first))]
    return int(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


def test_a_port_is_given_to_one_process_alone(guards: deque[int]) -> None:
    mine = [servers.free_port() for _ in range(3)]
    assert port_of_another_process(mine[0]) not in mine


def test_a_port_is_given_again_after_many_others(guards: deque[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MOST_GUARDS", 2)
    mine = [servers.free_port() for _ in range(3)]
    assert len(guards) == 2
    assert port_of_another_process(mine[0]) == mine[0]
