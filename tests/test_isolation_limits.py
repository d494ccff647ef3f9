"""Isolated agents where a process has no room: no thread, no child, and small limits."""

import multiprocessing
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from a2a.actions import Chunk
from a2a.agents import registry
from a2a.failures import Failure
from a2a.run import Run
from a2a.types import Part
from tasks_app.runner import fork_server
from tasks_app.runner.isolation import Child
from tasks_app.runner.pipe import Pieces, encode, pack
from tests.operations.asking import message


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    fork_server.warm.clear()
    fork_server.unable.clear()


def test_a_process_without_room_for_a_thread_says_that_it_cannot_start_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: Any) -> None:
        raise RuntimeError("can't start new thread")

    fork_server.warm.set()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    fork_server.cool_down()
    assert (fork_server.unable.is_set(), fork_server.warm.is_set()) == (True, False)


@pytest.mark.parametrize(("code", "expected"), [(0, True), (1, False), (255, False), (-9, False)])
def test_a_first_process_that_fails_does_not_count(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int, expected: bool
) -> None:
    class First:
        exitcode = code

        def __init__(self, **_: Any) -> None: ...

        def start(self) -> None: ...

        def join(self) -> None: ...

    monkeypatch.setattr(fork_server, "start_server", lambda: None)
    monkeypatch.setattr(fork_server.CONTEXT, "Process", First)
    assert fork_server._starts_child() is expected
    assert (f"exit code {code}" in caplog.text) is not expected


def test_an_action_may_be_as_large_as_a_task_where_limits_are_small(settings: Any) -> None:
    settings.A2A_TASK_FILE_BYTES, settings.A2A_TASK_CHARACTERS = 1, 10_000
    action = encode(pack(Chunk(parts=(Part(text="x" * 30_000),))))
    assert list(Pieces().add(len(action).to_bytes(4) + action)) == [action]
    with pytest.raises(Failure, match=r"than a task may hold: 40,001 bytes"):
        pack(Chunk(parts=(Part(text="x" * 50_000),)))


class Alone(Child):
    """A child without a process, whose standard error has words to be read."""

    def __init__(self) -> None:
        agent = registry.get("echo")
        assert agent
        self.done: list[str] = []
        super().__init__(Run(agent, task_id="task", context_id="context", message=message("hello")))

    def _start(self, order: bytes) -> None:
        self.pipe, other = socket.socketpair()
        self.errors, errors = multiprocessing.Pipe(duplex=False)
        os.write(errors.fileno(), b"last words")
        other.close()
        errors.close()

    def _order_to_stop(self) -> None:
        self.done.append("ordered")

    def _ends_within(self, seconds: float) -> bool:
        return True

    def _kill(self) -> None:
        self.done.append("killed")


def test_a_child_is_ordered_to_stop_also_where_no_thread_can_send_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Alone()

    def refuse(_: Any) -> None:
        child.done.append("no thread")
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    child.end()
    assert child.done == ["ordered", "no thread", "killed"]


def test_words_that_cannot_be_passed_on_fail_no_run_and_are_kept() -> None:
    child, before = Alone(), os.dup(2)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        os.dup2(writer, 2)
        child._read_errors()
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(writer)
        child.end()
    assert child.words == b"last words"


def test_a_child_is_killed_and_its_descriptors_are_closed_whatever_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Alone()

    def fail(seconds: float) -> bool:
        raise OSError("too bad")

    monkeypatch.setattr(child, "_ends_within", fail)
    with pytest.raises(OSError, match="too bad"):
        child.end()
    assert child.post
    assert (child.done, child.pipe.fileno(), child.errors.closed) == (["ordered", "killed"], -1, True)
    assert not child.post.is_alive()
