"""Messages between a process and the child that runs an agent for it, as MessagePack: values, never code."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from a2a.mistakes import not_json
from a2a.run import Action, Ask, Chunk, Preferences, Reject, Reply, Run, Say
from a2a.types import Json, Message

RaisedKind = Literal["failure", "retry", "mistake", "memory", "error"]
"""The agent's words for the caller, those of a Retry, a sentence for its author, no memory left, or anything else."""
_ACTIONS: dict[str, Any] = {kind.__name__: kind for kind in (Say, Ask, Chunk, Reply, Reject)}


class Order(Struct, frozen=True, kw_only=True):
    """Everything that a run is given."""

    agent: str
    module: str
    """Where the agent is defined, should the child not have it."""
    memory: int | None
    task_id: str
    context_id: str
    message: Message
    attempt: int
    history: tuple[Message, ...]
    conversation: tuple[Message, ...]
    metadata: Json
    preferences: Preferences


class Heard(Struct, frozen=True, tag=True):
    """To the child: a message for the inbox, and the number of its event."""

    message: Message
    seq: int


class Cancelled(Struct, frozen=True, tag=True):
    """To the child: nobody wants the result any more."""


class Given(Struct, frozen=True, tag=True):
    """From the child: an action of the agent."""

    kind: str
    action: msgspec.Raw
    heard: int = 0
    """The number of the newest message that the agent has looked at, as in the next two."""
    forgotten: tuple[str, ...] = ()
    """With the last action: sentences about those that were made and never given, as in the next."""


class Done(Struct, frozen=True, tag=True):
    """From the child: the agent has ended."""

    heard: int = 0
    forgotten: tuple[str, ...] = ()


class Raised(Struct, frozen=True, tag=True):
    """From the child: the agent raised something."""

    kind: RaisedKind
    text: str
    trace: str
    transient: bool
    """The agent says that this is worth another attempt."""
    after: float | None
    """Seconds before it, if the agent says how many."""
    heard: int = 0


ToChild = Heard | Cancelled
FromChild = Given | Done | Raised


def encode(value: Order | ToChild | FromChild) -> bytes:
    return msgspec.msgpack.encode(value)


decode_order = msgspec.msgpack.Decoder(Order).decode
decode_to_child = msgspec.msgpack.Decoder(ToChild).decode
decode_from_child = msgspec.msgpack.Decoder(FromChild).decode


def order_of(run: Run) -> Order:
    """Return what the child needs to make the same run."""
    return Order(
        agent=run.agent.name, module=run.agent.function.__module__, memory=run.agent.memory, task_id=run.task_id,
        context_id=run.context_id, message=run.message, attempt=run.attempt, history=run.history,
        conversation=run.conversation, metadata=run.metadata, preferences=run.preferences,
    )  # fmt: skip


def given(action: Action, forgotten: tuple[str, ...] = ()) -> Given:
    """Return the action as it is sent. Raises WrongValue for content that no message can hold."""
    try:
        packed = msgspec.msgpack.encode(action)
    except (TypeError, OverflowError, UnicodeEncodeError) as error:
        raise not_json(error) from None
    return Given(type(action).__name__, msgspec.Raw(packed), forgotten=forgotten)


def action_of(given: Given) -> Action:
    """Return the action that was sent. Raises msgspec.ValidationError."""
    if given.kind not in _ACTIONS:
        raise msgspec.ValidationError(f"an action of an unknown kind: {given.kind[:40]!r}")
    action: Action = msgspec.msgpack.decode(given.action, type=_ACTIONS[given.kind])
    return action
