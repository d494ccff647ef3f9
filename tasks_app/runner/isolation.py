"""Agents in processes of their own: `@agent(isolation="process")`. A child process runs one agent once. Python's fork
server, which has loaded Django and all agents, forks the child. The child can be ended at any point, and its crash
harms no other run."""

import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Generator, Iterator
from multiprocessing.connection import wait
from queue import SimpleQueue
from typing import assert_never

import msgspec
from django.conf import settings

from a2a.actions import Action
from a2a.failures import Failure, Retry
from a2a.mistakes import AgentMistake
from a2a.run import Run
from tasks_app.runner.fork_server import CONTEXT, cool_down, start_server, wake_server
from tasks_app.runner.offspring import kill_offspring, start_of
from tasks_app.runner.pipe import (
    NO_PIPE,
    PIECE,
    STOP,
    ActionData,
    Cancel,
    Done,
    FromChild,
    NewMessage,
    Pieces,
    Raised,
    Spent,
    ToChild,
    TooLong,
    action_of,
    decode_from_child,
    encode,
    order_of,
    send,
)
from tasks_app.runner.stopped import ProcessCrashed

log = logging.getLogger(__name__)
LOOK = 0.1
"""Seconds between two looks for messages to a silent child."""
WORDS = 4096
"""Bytes of a child's standard error that are kept for the error of a crash, at most."""
KILLED = 5.0
"""Seconds for a killed process to end."""


class AgentRaised(Exception):
    """An exception of an agent in a child process, with its traceback."""

    def __init__(self, trace: str, *, transient: bool = False) -> None:
        super().__init__(trace)
        self.transient = transient
        """True if another attempt may succeed, by the options of the agent."""


def is_transient_there(error: Exception) -> bool:
    """Return whether the child process judged that another attempt may succeed."""
    return isinstance(error, AgentRaised) and error.transient


class NotStarted(Exception):
    """This process could not start a child for an agent. The agent was not called, and another process may call it."""


def actions_of(run: Run) -> Generator[Action, None, None]:
    """Run the agent in a child process, and yield its actions. Raises Failure, AgentRaised, ProcessCrashed and
    NotStarted.

    The process is ended when the generator is closed, or when the run is cancelled.
    """
    child = Child(run)
    try:
        yield from child.actions()
    finally:
        child.end()


class Child:
    """The child process of one run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.sent_messages = 0
        """The number of messages of the inbox that were sent to it."""
        self.outbox: SimpleQueue[ToChild | None] = SimpleQueue()
        self.post: threading.Thread | None = None
        """The thread that sends the outbox: a child that reads nothing must not block the run."""
        self.over = False
        """True once it has sent its last message, so that it ends by itself."""
        self.mute = False
        """True once it has closed its standard error."""
        self.words = b""
        """The end of its standard error."""
        self.pieces = Pieces()
        order = encode(order_of(run))
        try:
            self._start(order)
        except Exception as error:
            cool_down()
            raise NotStarted("The process of the agent could not be started.") from error

    def _start(self, order: bytes) -> None:
        from tasks_app.runner.children import main  # loads Django if it is not loaded

        start_server()
        self.pipe, pipe = socket.socketpair()
        self.errors, errors = CONTEXT.Pipe(duplex=False)
        with pipe, errors:
            self.process = CONTEXT.Process(target=main, args=(pipe, errors, order), name=f"agent-{self.run.agent.name}")
            self.process.start()
            self.started = start_of(self.process.pid or 0)

    def actions(self) -> Generator[Action, None, None]:
        """Yield the agent's actions until it ends."""
        while not self.run.cancelled:
            self._send_messages()
            errors = [] if self.mute else [self.errors]
            ready = wait([self.pipe, self.process.sentinel, *errors], LOOK)
            if self.errors in ready:
                self._read_errors()
            if self.pipe in ready:
                for value in self._receive():
                    if isinstance(value, Spent):
                        self.run.spending.report(value.amount)  # The child itself stops at the limit.
                    elif (action := self._action_of(value)) is None:
                        return
                    else:
                        yield action
            elif self.process.sentinel in ready:
                raise self._crash()

    def _send_messages(self) -> None:
        for seq, message in self.run.inbox.entries[self.sent_messages :]:
            self._send(NewMessage(message, seq))
            self.sent_messages += 1

    def _send(self, value: ToChild) -> None:
        if self.post is None:
            post = threading.Thread(target=self._send_all, name="post", daemon=True)
            post.start()
            self.post = post
        self.outbox.put(value)

    def _send_all(self) -> None:
        with contextlib.suppress(OSError):  # It has ended. Its last message is read next.
            while (value := self.outbox.get()) is not None:
                send(self.pipe, encode(value))

    def _receive(self) -> Iterator[FromChild]:
        """Read a piece, and yield the messages that it completes. Raises ProcessCrashed."""
        try:
            piece = self.pipe.recv(PIECE)
            for message in self.pieces.add(piece):
                value: FromChild = decode_from_child(message)
                self.run.inbox.cursor = max(self.run.inbox.cursor, value.cursor)
                yield value
        except (OSError, TooLong, msgspec.DecodeError) as error:
            raise self._crash() from error
        if not piece:
            raise self._crash()

    def _action_of(self, value: ActionData | Done | Raised) -> Action | None:
        """Return the action in a message; None at the end. Raises the error of the agent."""
        if not isinstance(value, Raised):
            self.run.drafts.elsewhere = value.warnings
        try:
            if isinstance(value, ActionData):
                return action_of(value)
        except msgspec.DecodeError as error:
            raise self._crash() from error
        self.over = True
        match value:
            case Done():
                return None
            case Raised(kind="failure"):
                raise Failure(value.text, reason=value.reason) from AgentRaised(value.trace)
            case Raised(kind="retry"):
                raise Retry(value.text, after=value.after, reason=value.reason) from AgentRaised(value.trace)
            case Raised(kind="mistake"):
                raise AgentMistake(value.text)
            case Raised(kind="memory") if self.run.agent.memory is not None:
                limit = self.run.agent.memory / 1_000_000
                raise Failure(f"The agent needed more than the {limit:,.0f} MB of memory that it may have.") from (
                    AgentRaised(value.trace)
                )
            case Raised():
                raise AgentRaised(value.trace, transient=value.transient)
            case _:
                assert_never(value)

    def _read_errors(self) -> None:
        """Pass on the child's standard error, and keep its end.

        The standard error of this process may be a full disk or a pipe without a reader, which must not fail the run.
        """
        chunk = os.read(self.errors.fileno(), 65_536)
        if chunk:
            self.words = (self.words + chunk)[-WORDS:]
            with contextlib.suppress(OSError):
                os.write(2, chunk)
        self.mute = not chunk

    def _crash(self) -> ProcessCrashed:
        """Return an error with the end of the process and the end of its standard error."""
        self._ends_within(KILLED)
        words = self.words.decode("utf-8", "replace").strip()
        return ProcessCrashed(f"{describe_exit(self.process.exitcode)} Its last words:\n{words or '(none)'}")

    def _ends_within(self, seconds: float) -> bool:
        """Return whether the process ends in this time. Reads its standard error: a full pipe would block it."""
        wake_server()  # It learns of the end first.
        deadline = time.monotonic() + seconds
        while (rest := deadline - time.monotonic()) > 0:
            ready = wait([self.process.sentinel, *([] if self.mute else [self.errors])], rest)
            if self.errors in ready:
                self._read_errors()
            elif ready:
                break
        return self.process.exitcode is not None

    def _order_to_stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self.process.exitcode is None and self.process.pid is not None:
                os.kill(self.process.pid, STOP)

    def _kill(self) -> None:
        """Kill the process with all that it has started."""
        if self.process.exitcode is None:
            self.process.kill()  # If it has not begun yet, it leads no session.
        kill_offspring(self.process.pid or 0, self.started)

    def end(self) -> None:
        """Wait for the process to end after its last message; else order it to stop, and kill it after a grace. Then
        kill what it has started."""
        try:
            self._let_end()
        finally:  # Whatever went wrong, no process, thread or descriptor may be left.
            self._kill()
            self._close()

    def _let_end(self) -> None:
        if not self.over:
            self._order_to_stop()
            with contextlib.suppress(RuntimeError):  # There is no room for the thread that sends it.
                self._send(Cancel())
        if not self._ends_within(settings.A2A_KILL_SECONDS):
            log.warning("agent %s: its process %d does not end, killing it", self.run.agent.name, self.process.pid)

    def _close(self) -> None:
        try:
            self._ends_within(KILLED)
        finally:
            with contextlib.suppress(OSError):
                self.pipe.shutdown(socket.SHUT_RDWR)  # A process that the child started may hold the other end.
            if self.post is not None:
                self.outbox.put(None)
                self.post.join(KILLED)
            self.pipe.close()
            self.errors.close()


def describe_exit(code: int | None) -> str:
    """Return a sentence about the end of a process."""
    if code is None:
        return "The process of the agent closed its pipe and goes on."
    if code >= 0:
        cause = ": it has closed the pipe to its worker" if code == NO_PIPE else ""
        return f"The process of the agent ended by itself, with the exit code {code}{cause}."
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    cause = ", perhaps by the kernel for want of memory" if -code == signal.SIGKILL else ""
    return f"The process of the agent was ended by {name}{cause}."
