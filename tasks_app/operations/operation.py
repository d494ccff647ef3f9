"""The forms of an operation: its context, the steps that it awaits besides work items, and its grant."""

from collections.abc import Awaitable, Callable, Coroutine
from time import perf_counter
from typing import Any, Generic

from msgspec import Struct, field

from a2a.answers import Result
from a2a.documents import TaskDocument
from a2a.language import Spelling
from a2a.run import Run
from a2a.shared_streams import SharedStreamDocument
from a2a.types import Message
from tasks_app.callers.access import Caller
from tasks_app.callers.scopes import Right
from tasks_app.database.rows import ActRow, UsageRow
from tasks_app.database.waits import CallerLeft
from tasks_app.database.work import R, Step, Work
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.none import NO_EXCHANGE, NoExchange
from tasks_app.limits.accounts import Holding, account
from tasks_app.limits.turns import Turn
from tasks_app.off_loop import LARGE
from tasks_app.operations.capabilities import Capability
from tasks_app.runner.quick import Played

__all__ = [
    "Ask",
    "Await",
    "CallerLeft",
    "Context",
    "Done",
    "Follow",
    "Grant",
    "Operation",
    "RunQuick",
    "Wait",
    "directly",
]

Ask = Callable[[Work[Any]], Awaitable[Any]]
"""A function that performs a work item: `directly` within an operation, and the bridge on a loop."""


def directly(item: Work[R]) -> Awaitable[R]:
    """Return the work item itself, which an operation awaits."""
    return item


class Context(Struct, kw_only=True):
    """The surroundings of a request: its caller, the agent of its address, and its exchange."""

    caller: Caller
    exchange: OpenExchange | NoExchange = NO_EXCHANGE
    agent: str | None = None
    """The agent named by the address."""
    actor: str = "caller"
    acts: tuple[ActRow, ...] = ()
    """The acts of an operator, to be stored with the change."""
    spelling: Spelling = "own"
    """The spelling of scopes in errors, which is that of the language."""
    agent_name: str = ""
    """The agent that the call is for, once the operation has found it. Languages with a header for it name it in their
    answers."""
    extensions: tuple[str, ...] = ()
    """The agent's extensions that the message activated. The operation sets them, and the door names them in a
    header."""
    departure: Callable[[], Awaitable[None]] | None = None
    """Returns when the caller has left; None if the door cannot notice it."""
    secrets: dict[str, str] = {}
    """The secrets that came with the message. They are stored with it, for its agent."""
    usage: UsageRow | None = None
    """The row of the usage history, to be stored with the new task. None once it is stored."""
    patience: float = float("inf")
    """The time on perf_counter() at which a wait goes back to the door."""
    counts_answer: bool = False
    """Whether the bytes of the answer count in the account of the caller, until the door has sent them."""
    counts_small: bool = False
    """Whether a small answer counts as well. Alone it does not, but a batch keeps hundreds of them until its client has
    read all, and on each socket dozens may wait for their turn to be sent."""
    waits_for_room: bool = False
    """Whether a large answer may wait until earlier ones of the caller have been sent. A member of a batch would wait
    for answers of its own batch."""
    request_weight: int = 0
    """The bytes of a large request, which the account has for as long as the door works on the call."""
    weight: Holding | None = None
    """The bytes of the answer in the account, once the operation has taken them."""
    turn: Turn | None = None
    """The turn of the call among those of its owner. None for work of our own, which has no line."""

    def counts(self, size: int) -> bool:
        """Return whether an answer of so many bytes counts in the account of the caller."""
        return self.counts_answer and size > (0 if self.counts_small else LARGE)

    def reserve(self, size: int) -> None:
        """Take the bytes of the answer from the account before they are read, and before anything is changed, if they
        count. Raises RateLimited and Unavailable."""
        if self.weight is None and self.counts(size):
            self.weight = account.hold_answer(self.caller.owner_id, size, self.exchange.request_bytes)

    def end_turn(self) -> None:
        """Give the turn of the call to the next one, before a wait for the task, and at the end."""
        if self.turn is not None:
            self.turn.end()

    def release(self) -> None:
        """Give the bytes of the answer back, if there are any."""
        if self.weight is not None:
            self.weight.release()
            self.weight = None


class RunQuick(Step[Played], Struct, frozen=True):
    """A call of a quick agent, which gives events or a direct reply."""

    run: Run
    owner_id: int


class Await(Step[R], Struct, Generic[R], frozen=True):
    """A step that is no work of the database."""

    start: Callable[[], Awaitable[R]]


class Done(Struct, frozen=True):
    """An answer."""

    result: Result


class Wait(Struct, frozen=True, kw_only=True):
    """A wait for the task, until no agent works on it or the operator's limit is reached. The answer is the task."""

    task_id: str
    context_id: str
    after: int
    history_length: int | None
    began: float = field(default_factory=perf_counter)
    """The start of the limits, on perf_counter()."""
    seconds: float = float("inf")
    """The limit of the call or of the agent. The operator's own limit holds beside it."""


class Follow(Struct, frozen=True, kw_only=True):
    """A stream: the task as of the cursor, then its events; one message; or a shared stream, then its chunks."""

    first: TaskDocument | Message | SharedStreamDocument
    after: int | None = None
    """The last chunk of a shared stream that the caller has seen; None for the last one that there is."""
    notices: int | None = None
    """The filter of a stream of notifications; None for all events."""
    history_length: int | None = None
    stays: bool = False
    """True for a subscription of 1.0, which stays open while the agent waits for an answer. A subscription of 0.x and
    the stream of a send end then (docs/protocol.md#following-a-task)."""


Grant = Done | Wait | Follow
"""The return value of an operation."""


class Operation(Struct, frozen=True):
    """One row in the table of operations."""

    function: Callable[[Any, Context], Coroutine[object, object, Grant]]
    """The function that performs it. The request is Any, because the type of a table cannot say that a function takes
    the requests of its own row alone."""
    right: Right
    """The right that its caller needs."""
    capability: Capability | None = None
    """The optional capability that it belongs to, if any."""
    cost: int = 1
    """The units that a call costs its caller under a rate limit; A2A_OPERATION_COSTS may set another cost."""
