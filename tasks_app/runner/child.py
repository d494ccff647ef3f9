"""The inside of a child process: it makes the run, lets the agent act in its main thread, and sends what it says."""

import contextlib
import ctypes
import faulthandler
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from msgspec.structs import replace

from a2a.acting import act_here
from a2a.agents import Agent, registry
from a2a.mistakes import AgentMistake
from a2a.run import Action, Failure, Retry, Run
from a2a.scribe import ends_run
from tasks_app.files import run_files
from tasks_app.runner.pipe import (
    Done,
    FromChild,
    Heard,
    Order,
    Raised,
    RaisedKind,
    decode_order,
    decode_to_child,
    encode,
    given,
)

PR_SET_PDEATHSIG = 1
RESERVE = 16_000_000
"""Bytes beyond its limit for a process to say what went wrong."""
STOPPED = 128 + signal.SIGTERM
"""The exit code of a child that was told to stop."""


def run_alone(connection: Connection, errors: Connection, order: bytes) -> NoReturn:
    """Run the agent of the order, and end the process."""
    os.dup2(errors.fileno(), 2)  # what it says there last is kept if it crashes
    errors.close()
    faulthandler.enable()
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches it too; its parent says when it ends
    signal.signal(signal.SIGTERM, _stop)
    told = decode_order(order)
    run: Run | None = None

    def send(value: FromChild) -> None:
        connection.send_bytes(encode(replace(value, heard=run.inbox.cursor) if run else value))

    code = 0
    try:
        run = _run_of(told)
        threading.Thread(target=_listen, args=(connection, run), name="listen", daemon=True).start()
        _limit_memory(told.memory)
        _act(run, send)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException as error:  # noqa: BLE001  # whatever an agent raises, its parent is told
        found = registry.get(told.agent)
        _report(error, found.retry_on if found else (), send)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _report(error: BaseException, retry_on: tuple[type[Exception], ...], send: Callable[[FromChild], None]) -> None:
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    trace = "".join(traceback.format_exception(error)).encode("utf-8", "replace").decode()
    kind: RaisedKind = "error"
    text, after = "", None
    match error:
        case Retry():
            kind, text, after = "retry", error.text, error.after
        case Failure():
            kind, text = "failure", error.text
        case AgentMistake():
            kind, text = "mistake", str(error)
        case MemoryError():
            kind = "memory"
    send(Raised(kind, text, trace, isinstance(error, retry_on), after))


def _stop(*_: Any) -> NoReturn:
    """Unwind whatever the agent is at, so that its `finally` blocks run."""
    raise SystemExit(STOPPED)


def _die_with_parent() -> None:
    """Have the kernel kill this process when the one that forked it dies, which dies with the worker; where the kernel
    cannot, the end of the pipe says so."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:
            os._exit(1)


def _limit_memory(limit: int | None) -> None:
    """Let the process take so many bytes beyond what it has now: its own data, not libraries and mapped files."""
    if limit is None:
        return
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    now = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), 0)
    resource.setrlimit(resource.RLIMIT_DATA, (now + limit, now + limit + RESERVE))


def _run_of(order: Order) -> Run:
    return Run(
        _agent_of(order), task_id=order.task_id, context_id=order.context_id, message=order.message,
        attempt=order.attempt, history=order.history, conversation=order.conversation, metadata=order.metadata,
        preferences=order.preferences, files=run_files,
    )  # fmt: skip


def _agent_of(order: Order) -> Agent:
    if registry.get(order.agent) is None:
        import_module(order.module)
    agent = registry.get(order.agent)
    if agent is None:
        raise LookupError(f"no agent {order.agent} in the child process")
    return agent


def _listen(connection: Connection, run: Run) -> None:
    """Take messages for the run; without its parent the process ends at once."""
    while True:
        try:
            told = decode_to_child(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(1)
        if isinstance(told, Heard):
            run.inbox.show(told.message, told.seq)
        else:
            run.cancelled = True


def _act(run: Run, send: Callable[[FromChild], None]) -> None:
    def give(action: Action) -> bool:
        last = ends_run(action)
        send(given(action, run.drafts.warnings(run.agent.name) if last else ()))
        return last

    act_here(run, give)
    send(Done(forgotten=run.drafts.warnings(run.agent.name)))
