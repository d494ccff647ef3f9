"""The inside of a child process: it makes the run, lets the agent act in its main thread, and sends its actions."""

import contextlib
import ctypes
import errno
import faulthandler
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from socket import socket
from typing import Any, NoReturn, assert_never

from msgspec.structs import replace

from a2a.acting import act_here
from a2a.actions import Action
from a2a.agents import Agent, registry
from a2a.failures import Failure, Retry
from a2a.mistakes import AgentMistake
from a2a.run import Run
from a2a.scribe import ends_run
from a2a.spending import Spending
from tasks_app.agent_files import folder
from tasks_app.files import run_files
from tasks_app.memory.runs import RunMemory
from tasks_app.run_secrets import run_secrets
from tasks_app.runner import pipe
from tasks_app.runner.failures import judge_safely, reason_of, text_of, trace_of
from tasks_app.runner.offspring import kill_offspring, start_of
from tasks_app.runner.pipe import (
    NO_PIPE,
    PIECE,
    STOP,
    Cancel,
    Done,
    FromChild,
    NewMessage,
    Order,
    Pieces,
    Raised,
    RaisedKind,
    Spent,
    ToChild,
    decode_order,
    decode_to_child,
    encode,
    pack,
)
from tasks_app.runner.stopped import exception_of

PR_SET_PDEATHSIG = 1
RESERVE = 16_000_000
"""Bytes beyond the limit of a process, with which it can report its error."""
STOPPED = 128 + STOP
"""The exit code of a child after the order to stop."""


class StopOrder(SystemExit):
    """The order of the parent to stop. Any other SystemExit is an error of the agent."""


def run_alone(connection: socket, errors: Connection, order: bytes) -> NoReturn:
    """Run the agent of the order, and end the process."""
    os.setsid()  # Its id is that of the session of all that the agent starts.
    _forget_server()
    os.dup2(errors.fileno(), 2)  # its end is kept for the case of a crash
    errors.close()
    faulthandler.enable()
    _die_with_parent()
    _heed_parent_only()
    values = decode_order(order)
    run: Run | None = None
    sending, own = threading.Lock(), os.getpid()

    def send(value: FromChild) -> None:
        if os.getpid() != own:
            raise RuntimeError("A fork of the process of an agent cannot act or report costs for its run.")
        with sending:  # Any thread of the agent may report a cost.
            pipe.send(connection, encode(replace(value, cursor=run.inbox.cursor) if run else value))

    code = 0
    try:
        run = _run_of(values)
        threading.Thread(target=_listen, args=(connection, run), name="listen", daemon=True).start()
        _limit_memory(values.memory)
        _act(run, send)
        if os.getpid() == own:
            send(Done(warnings=run.drafts.warnings(run.agent.name)))
    except StopOrder:
        code = STOPPED
    except BaseException as error:  # noqa: BLE001  # the parent gets any error of an agent
        code = _report(exception_of(error), values.agent, send) if os.getpid() == own else _print(error)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _print(error: BaseException) -> int:
    """Print the error of a fork of the agent, which must not end the run, and return the exit code of the fork."""
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        return error.code or 0
    with contextlib.suppress(Exception):
        traceback.print_exception(error)
    return 1


def _report(error: Exception, name: str, send: Callable[[FromChild], None]) -> int:
    """Send the error of an agent, and return the exit code of the process."""
    agent = registry.get(name)
    retry_on = agent.retry_on if agent else ()
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    try:
        send(judge_safely(error, lambda raised: _raised(raised, retry_on)))
    except OSError:
        return NO_PIPE
    return 0


def _raised(error: Exception, retry_on: tuple[type[Exception], ...]) -> Raised:
    kind: RaisedKind = "error"
    text, after = "", None
    match error:
        case Retry():
            kind, text, after = "retry", text_of(error), error.after
        case Failure():
            kind, text = "failure", text_of(error)
        case AgentMistake():
            kind, text = "mistake", str(error)
        case MemoryError():
            kind = "memory"
    return Raised(kind, text, trace_of(error), isinstance(error, retry_on), after, reason_of(error))


def _heed_parent_only() -> None:
    """Stop at an order of the parent only, and not at a signal to all processes of a service or a terminal.

    Such signals have handlers that do nothing. They are not ignored, because a program that the agent starts would then
    ignore them, too. A fork of the agent gets no orders, so it has the default handlers.
    """
    handlers = {signal.SIGINT: _go_on, signal.SIGTERM: _go_on, STOP: _stop}
    for number, handler in handlers.items():
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, handlers)  # the fork server blocks SIGINT

    def restore() -> None:
        for number in handlers:
            signal.signal(number, signal.SIG_DFL)

    os.register_at_fork(after_in_child=restore)


def _go_on(*_: Any) -> None:
    """Ignore a signal."""


def _stop(*_: Any) -> NoReturn:
    """Unwind the stack of the agent, so that its `finally` blocks run."""
    raise StopOrder(STOPPED)


def _forget_server() -> None:
    """Close this end of the pipe that keeps the fork server alive.

    So the server ends with the worker, and kills the children that are left.
    """
    server: Any = forkserver
    with contextlib.suppress(OSError, TypeError):
        os.close(server._forkserver._forkserver_alive_fd)
        server._forkserver._forkserver_alive_fd = None


def _die_with_parent() -> None:
    """Have the kernel kill this process when the server that forked it dies, as it does with its worker. On systems
    without such a signal, the process ends when its pipe is closed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:
            os._exit(1)


def _limit_memory(limit: int | None) -> None:
    """Limit the process to `limit` bytes of data beyond what it has now. Libraries and mapped files do not count."""
    if limit is None:
        return
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    now = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), 0)
    resource.setrlimit(resource.RLIMIT_DATA, (now + limit, now + limit + RESERVE))


def _run_of(order: Order) -> Run:
    return Run(
        _agent_of(order),
        task_id=order.task_id,
        context_id=order.context_id,
        message=order.message,
        attempt=order.attempt,
        history=order.history,
        conversation=order.conversation,
        metadata=order.metadata,
        preferences=order.preferences,
        files=run_files,
        secrets=run_secrets,
        spending=Spending(order.limit, order.spent),
        memory=RunMemory(order.holder) if order.holder else None,
    )


def _agent_of(order: Order) -> Agent:
    folder.refresh(at_once=True)  # The server that forks children has the agents of its own start.
    if registry.get(order.agent) is None:
        import_module(order.module)
    agent = registry.get(order.agent)
    if agent is None:
        raise LookupError(f"the child process has no agent {order.agent}")
    return agent


def _listen(connection: socket, run: Run) -> None:
    """Take in messages for the run. Kill the process and all that it has started when its parent is gone."""
    pieces = Pieces()
    try:
        while piece := connection.recv(PIECE):
            for message in pieces.add(piece):
                _take_in(decode_to_child(message), run)
    except OSError as error:
        if error.errno in (errno.EBADF, errno.ENOTSOCK):  # The agent closed it. The parent lives, and kills the rest.
            os._exit(NO_PIPE)
    with contextlib.suppress(Exception):  # This process may have no descriptor or memory left.
        kill_offspring(os.getpid(), start_of(os.getpid()))
    os.killpg(0, signal.SIGKILL)


def _take_in(value: ToChild, run: Run) -> None:
    match value:
        case NewMessage():
            run.inbox.show(value.message, value.seq)
        case Cancel():
            run.cancelled = True
        case _:
            assert_never(value)


def _act(run: Run, send: Callable[[FromChild], None]) -> None:
    def give(action: Action) -> bool:
        last = ends_run(action)
        send(pack(action, run.drafts.warnings(run.agent.name) if last else ()))
        return last

    run.spending.on_report = lambda amount: send(Spent(amount))
    act_here(run, give)
