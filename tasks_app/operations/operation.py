"""An operation: what it is given, what it may await besides work items, what it returns."""

from collections.abc import Awaitable, Callable, Coroutine
from time import perf_counter
from typing import Any, Generic

from msgspec import Struct, field

from a2a.answers import Result
from a2a.documents import TaskDocument
from a2a.run import Run
from a2a.types import Message
from tasks_app.callers.access import Caller
from tasks_app.database.waits import Left
from tasks_app.database.work import R, Step
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.none import NO_EXCHANGE, NoExchange
from tasks_app.operations.capabilities import Capability
from tasks_app.runner.quick import Played

__all__ = ["Await", "Context", "Done", "Follow", "Grant", "Left", "Operation", "RunQuick", "Wait"]


class Context(Struct, kw_only=True):
    """Around a request: who asks, at which agent's address, and the exchange under way."""

    caller: Caller
    exchange: OpenExchange | NoExchange = NO_EXCHANGE
    agent: str | None = None
    """The agent named by the address."""
    actor: str = "caller"
    activated: tuple[str, ...] = ()
    """The agent's extensions that the message asked for; set by the operation, told in a header."""
    left: Callable[[], Awaitable[None]] | None = None
    """Ends when the caller has left; None where the door cannot tell."""
    patience: float = float("inf")
    """The time of perf_counter() at which a wait is handed back to the door."""


class RunQuick(Step[Played], Struct, frozen=True):
    """A quick agent at work: its events or its direct reply."""

    run: Run


class Await(Step[R], Struct, Generic[R], frozen=True):
    """Anything outside the database."""

    start: Callable[[], Awaitable[R]]


class Done(Struct, frozen=True):
    """The answer is known."""

    result: Result


class Wait(Struct, frozen=True, kw_only=True):
    """The answer is the task, once nobody works on it or the time is up."""

    task_id: str
    context_id: str
    after: int
    history_length: int | None
    began: float = field(default_factory=perf_counter)
    """The time of perf_counter() from which the operator's limit counts."""


class Follow(Struct, frozen=True, kw_only=True):
    """The answer is a stream: the task as of the cursor, then its events; or a single message."""

    first: TaskDocument | Message
    history_length: int | None = None
    stays: bool = False
    """Open through interruptions: a subscription, not the stream of a send (docs/protocol.md#following-a-task)."""


Grant = Done | Wait | Follow
"""The return value of an operation."""


class Operation(Struct, frozen=True):
    """A row of the table of operations."""

    function: Callable[[Any, Context], Coroutine[Any, Any, Grant]]
    scope: str
    capability: Capability | None = None
    """The optional capability that it belongs to."""
