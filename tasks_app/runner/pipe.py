"""Messages between a process and a child that runs an agent for it, as MessagePack: values, never code. Each is sent
behind its length, and read in pieces, so that no reader has to wait for the rest of a message."""

import signal
from collections.abc import Iterator
from socket import socket
from typing import Literal

import msgspec
from django.conf import settings
from msgspec import Struct

from a2a.actions import Action, Ask, Chunk, Reject, Reply, Say
from a2a.failures import Failure
from a2a.mistakes import not_json
from a2a.preferences import Preferences
from a2a.run import Run
from a2a.types import Json, Message
from tasks_app.memory.entries import Holder
from tasks_app.memory.runs import holder_of

RaisedKind = Literal["failure", "retry", "mistake", "memory", "error"]
"""The kind of an error: Failure, Retry, a mistake of the agent's author, no memory, or any other."""
STOP = signal.SIGUSR1
"""The signal by which a process orders its child to stop. A supervisor may send SIGTERM to the child as well, when it
stops the whole service: the child then goes on, because its parent gives it a grace."""
NO_PIPE = 113
"""The exit code of a child that cannot use its pipe any more."""
PIECE = 65_536
"""Bytes of a piece, at most."""
MARGIN = 1_000_000
"""Bytes of a message that are left for the values beside its action."""
HEAD = 4
"""Bytes of the length of a message."""
_ACTIONS: dict[str, type[Action]] = {kind.__name__: kind for kind in (Say, Ask, Chunk, Reply, Reject)}


class Order(Struct, frozen=True, kw_only=True):
    """All values of a run."""

    agent: str
    module: str
    """The module that defines the agent, for a child that has not imported it."""
    memory: int | None
    task_id: str
    context_id: str
    message: Message
    attempt: int
    history: tuple[Message, ...]
    conversation: tuple[Message, ...]
    metadata: Json
    preferences: Preferences
    limit: int | None
    """The most that the task may cost, in millionths of a dollar."""
    spent: int
    holder: Holder | None = None
    """The holder of the memory."""


class NewMessage(Struct, frozen=True, tag=True):
    """To the child: a message for the inbox, with the number of its event."""

    message: Message
    seq: int


class Cancel(Struct, frozen=True, tag=True):
    """To the child: the run was stopped."""


class ActionData(Struct, frozen=True, tag=True):
    """From the child: an action of the agent."""

    kind: str
    action: msgspec.Raw
    cursor: int = 0
    """The event of the newest message that the agent has read."""
    warnings: tuple[str, ...] = ()
    """Sentences about actions that the agent made but did not yield, with its last action."""


class Spent(Struct, frozen=True, tag=True):
    """From the child: the agent has reported a cost, in millionths of a dollar."""

    amount: int
    cursor: int = 0


class Done(Struct, frozen=True, tag=True):
    """From the child: the agent has ended."""

    cursor: int = 0
    warnings: tuple[str, ...] = ()


class Raised(Struct, frozen=True, tag=True):
    """From the child: the agent raised an error."""

    kind: RaisedKind
    text: str
    trace: str
    transient: bool
    """True if another attempt may succeed, by the options of the agent."""
    after: float | None
    """The seconds before it, if the agent asked for some."""
    reason: str = ""
    """The reason of a Failure."""
    cursor: int = 0


ToChild = NewMessage | Cancel
FromChild = ActionData | Spent | Done | Raised


def encode(value: Order | ToChild | FromChild) -> bytes:
    return msgspec.msgpack.encode(value)


def largest() -> int:
    """Return the most bytes of a message: those that a task may hold, with four for each character, and a margin."""
    most: int = settings.A2A_TASK_FILE_BYTES + 4 * settings.A2A_TASK_CHARACTERS
    return min(most + MARGIN, 2**32 - 1)


def send(pipe: socket, message: bytes) -> None:
    """Send a message; wait while the pipe is full."""
    pipe.sendall(len(message).to_bytes(HEAD))
    pipe.sendall(message)


class TooLong(Exception):
    """A message is longer than it may be."""


class Pieces:
    """Puts the messages of a pipe together from the pieces in which they arrive."""

    def __init__(self) -> None:
        self.rest = bytearray()
        """The beginning of a message, with its length."""

    def add(self, piece: bytes) -> Iterator[bytes]:
        """Yield the messages that the piece completes. Raises TooLong."""
        self.rest += piece
        while len(self.rest) >= HEAD:
            end = HEAD + int.from_bytes(self.rest[:HEAD])
            if end > HEAD + largest():
                raise TooLong(f"a message of {end - HEAD} bytes")
            if len(self.rest) < end:
                break
            message = bytes(self.rest[HEAD:end])
            del self.rest[:end]
            yield message


decode_order = msgspec.msgpack.Decoder(Order).decode
decode_to_child = msgspec.msgpack.Decoder(ToChild).decode
decode_from_child = msgspec.msgpack.Decoder(FromChild).decode


def order_of(run: Run) -> Order:
    """Return the values of a run for the child."""
    return Order(
        agent=run.agent.name,
        module=run.agent.function.__module__,
        memory=run.agent.memory,
        task_id=run.task_id,
        context_id=run.context_id,
        message=run.message,
        attempt=run.attempt,
        history=run.history,
        conversation=run.conversation,
        metadata=run.metadata,
        preferences=run.preferences,
        limit=run.spending.limit,
        spent=run.spending.spent,
        holder=holder_of(run.memory_door),
    )


def pack(action: Action, warnings: tuple[str, ...] = ()) -> ActionData:
    """Return the message with an action. Raises WrongValue for content that JSON cannot express, and Failure for more
    than a task may hold."""
    try:
        data = msgspec.msgpack.encode(action)
    except (TypeError, OverflowError, UnicodeEncodeError) as error:
        raise not_json(error) from None
    if len(data) > (most := largest() - MARGIN):
        raise Failure(f"The agent has given more at once than a task may hold: {most:,} bytes.")
    return ActionData(type(action).__name__, msgspec.Raw(data), warnings=warnings)


def action_of(message: ActionData) -> Action:
    """Return the action in a message. Raises msgspec.ValidationError."""
    if message.kind not in _ACTIONS:
        raise msgspec.ValidationError(f"an action of an unknown kind: {message.kind[:40]!r}")
    action: Action = msgspec.msgpack.decode(message.action, type=_ACTIONS[message.kind])
    return action
