"""Agents in processes of their own: `@agent(isolation="process")`. A child runs one agent once. It is forked by a
server that has Django and all agents loaded, can be ended whatever it is at, and takes nobody along when it crashes."""

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Generator
from multiprocessing import forkserver
from multiprocessing.connection import wait
from queue import SimpleQueue

import msgspec
from django.conf import settings

from a2a.mistakes import AgentMistake
from a2a.run import Action, Failure, Retry, Run
from tasks_app.hints import hints
from tasks_app.runner.pipe import (
    Cancelled,
    Done,
    FromChild,
    Given,
    Heard,
    Raised,
    ToChild,
    action_of,
    decode_from_child,
    encode,
    order_of,
)
from tasks_app.runner.stopped import AgentCrashed

log = logging.getLogger(__name__)
LOOK = 0.1
"""Seconds after which a child that says nothing is told what is new."""
WORDS = 4096
"""Bytes of a child's standard error that are kept for the case that it crashes."""
KILLED = 5.0
"""Seconds for a killed process to be gone."""
_CONTEXT = multiprocessing.get_context("forkserver")
_warming = threading.Lock()
warm = threading.Event()
"""A child is there within milliseconds. Until then no such run is claimed: loading would use up its time."""


class AgentRaised(Exception):
    """An exception of an agent in a process of its own, with the traceback from there."""

    def __init__(self, trace: str, *, transient: bool = False) -> None:
        super().__init__(trace)
        self.transient = transient
        """The agent says that this is worth another attempt."""


def is_transient_there(error: Exception) -> bool:
    """Return whether the error was worth another attempt in the process in which it was raised."""
    return isinstance(error, AgentRaised) and error.transient


class ProcessCrashed(AgentCrashed):
    """The process of an agent ended without a word of the agent: by a signal, or by itself."""


def warm_up() -> None:
    """Start the server that forks the children, wait until it has loaded Django and all agents, and say so."""
    try:
        _start_server()
        with _warming:
            # A fork is answered when everything is loaded.
            first = _CONTEXT.Process(target=os.getpid, name="warm-up")
            first.start()
            first.join()
    except Exception:
        log.exception("the server that forks processes for agents did not start; each run tries again")
    warm.set()
    hints.offer()


def _start_server() -> None:
    with _warming:
        _CONTEXT.set_forkserver_preload(["tasks_app.runner.children"])
        forkserver.ensure_running()


def actions_of(run: Run) -> Generator[Action, None, None]:
    """Run the agent in a process of its own, and yield its actions. Raises Failure, AgentRaised and ProcessCrashed. The
    process is ended when this is closed, or when the run is cancelled."""
    child = Child(run)
    try:
        yield from child.actions()
    finally:
        child.end()


class Child:
    """The process of one run."""

    def __init__(self, run: Run) -> None:
        from tasks_app.runner.children import main  # loads Django where it is not loaded

        _start_server()
        self.run = run
        self.heard = 0
        """Messages of the inbox that it was told of."""
        self.outbox: SimpleQueue[ToChild | None] = SimpleQueue()
        self.post: threading.Thread | None = None
        """Sends what is in the outbox: a child that takes nothing in holds up nobody else."""
        self.over = False
        """It has said its last, and ends by itself."""
        self.mute = False
        """It has closed its standard error."""
        self.words = b""
        self.mine, theirs = _CONTEXT.Pipe()
        self.errors, their_errors = _CONTEXT.Pipe(duplex=False)
        self.process = _CONTEXT.Process(
            target=main, args=(theirs, their_errors, encode(order_of(run))), name=f"agent-{run.agent.name}"
        )
        try:
            self.process.start()
        except (OSError, EOFError) as error:
            raise ProcessCrashed("The process of the agent could not be started.") from error
        finally:
            theirs.close()
            their_errors.close()

    def actions(self) -> Generator[Action, None, None]:
        """Yield what the agent says until it ends."""
        while not self.run.cancelled:
            self._tell()
            errors = [] if self.mute else [self.errors]
            ready = wait([self.mine, self.process.sentinel, *errors], LOOK)
            if self.errors in ready:
                self._read_errors()
            if self.mine in ready:
                if (action := self._received()) is None:
                    return
                yield action
            elif self.process.sentinel in ready:
                raise self._crash()

    def _tell(self) -> None:
        for seq, message in self.run.inbox.entries[self.heard :]:
            self._send(Heard(message, seq))
            self.heard += 1

    def _send(self, value: ToChild) -> None:
        if self.post is None:
            self.post = threading.Thread(target=self._send_all, name="post", daemon=True)
            self.post.start()
        self.outbox.put(value)

    def _send_all(self) -> None:
        with contextlib.suppress(OSError):  # It has ended; what it said last is read next.
            while (value := self.outbox.get()) is not None:
                self.mine.send_bytes(encode(value))

    def _received(self) -> Action | None:
        """Return the next action; None at the end. Raises what the agent raised."""
        try:
            value: FromChild = decode_from_child(self.mine.recv_bytes())
            self.run.inbox.cursor = max(self.run.inbox.cursor, value.heard)
            if not isinstance(value, Raised):
                self.run.drafts.elsewhere = value.forgotten
            if isinstance(value, Given):
                return action_of(value)
        except (EOFError, OSError, msgspec.DecodeError) as error:
            raise self._crash() from error
        self.over = True
        match value:
            case Done():
                return None
            case Raised(kind="failure"):
                raise Failure(value.text) from AgentRaised(value.trace)
            case Raised(kind="retry"):
                raise Retry(value.text, after=value.after) from AgentRaised(value.trace)
            case Raised(kind="mistake"):
                raise AgentMistake(value.text)
            case Raised(kind="memory") if self.run.agent.memory is not None:
                limit = self.run.agent.memory / 1_000_000
                raise Failure(f"The agent needed more than the {limit:,.0f} MB of memory that it may have.") from (
                    AgentRaised(value.trace)
                )
            case Raised():
                raise AgentRaised(value.trace, transient=value.transient)

    def _read_errors(self) -> None:
        """Pass on what the child writes to its standard error, and keep the end of it."""
        chunk = os.read(self.errors.fileno(), 65_536)
        if chunk:
            os.write(2, chunk)
            self.words = (self.words + chunk)[-WORDS:]
        self.mute = not chunk

    def _crash(self) -> ProcessCrashed:
        """Return how the process ended, with its last words."""
        self._ends_within(KILLED)
        words = self.words.decode("utf-8", "replace").strip()
        return ProcessCrashed(f"{how(self.process.exitcode)} Its last words:\n{words or '(none)'}")

    def _ends_within(self, seconds: float) -> bool:
        """Return whether the process ends in that time. Its standard error is read meanwhile: the pipe may be full."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            ready = wait([self.process.sentinel, *([] if self.mute else [self.errors])], left)
            if self.errors in ready:
                self._read_errors()
            elif ready:
                break
        return self.process.exitcode is not None

    def end(self) -> None:
        """End the process: by itself if it has said its last, else by SIGTERM, and after a grace by SIGKILL."""
        if not self.over:
            self._send(Cancelled())
            self.process.terminate()
        if not self._ends_within(settings.A2A_KILL_SECONDS):
            log.warning("agent %s: its process %d does not end, killing it", self.run.agent.name, self.process.pid)
            self.process.kill()
            self._ends_within(KILLED)
        if self.post is not None:
            self.outbox.put(None)
            self.post.join(KILLED)
        self.mine.close()
        self.errors.close()


def how(code: int | None) -> str:
    """Return a sentence about how a process ended."""
    if code is None:
        return "The process of the agent closed its pipe and goes on."
    if code >= 0:
        return f"The process of the agent ended by itself, with the exit code {code}."
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    cause = ", perhaps by the kernel for want of memory" if -code == signal.SIGKILL else ""
    return f"The process of the agent was ended by {name}{cause}."
