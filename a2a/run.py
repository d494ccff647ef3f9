"""What an agent is given, the actions it may yield, and how it fails in its own words."""

from typing import Any

from msgspec import UNSET, Struct

from a2a.agents import Agent
from a2a.types import Artifact, Json, Message, Part


class Say(Struct, frozen=True):
    """Progress: the task is working, and this is what the agent says about it."""

    parts: tuple[Part, ...]


class Ask(Struct, frozen=True):
    """A question to the caller: the task is interrupted until the next message."""

    parts: tuple[Part, ...]
    credentials: bool = False
    """It is credentials that are missing, not input."""


class Chunk(Struct, frozen=True):
    """Parts of a result. Chunks of one artifact are appended to each other within an attempt."""

    parts: tuple[Part, ...]
    artifact_id: str | None = None
    """None is the run's own artifact."""
    name: str | None = None
    description: str | None = None
    metadata: Json | None = None
    last: bool = False
    """Nothing is added to this artifact any more."""


class Reply(Struct, frozen=True):
    """A message: for a quick agent's new conversation the whole answer, without a task; else the last word."""

    parts: tuple[Part, ...]


class Reject(Struct, frozen=True):
    """The agent will not do it."""

    parts: tuple[Part, ...]


Action = Say | Ask | Chunk | Reply | Reject


class Failure(Exception):
    """What an agent raises to fail in its own words: callers read them, so they tell nothing that is not for all."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Run:
    """One try of an agent at a task."""

    def __init__(
        self, agent: Agent, *, task_id: str, context_id: str, message: Message, attempt: int = 1,
        history: tuple[Message, ...] = (), conversation: tuple[Message, ...] = (), metadata: Json | None = None,
    ) -> None:  # fmt: skip
        self.agent = agent
        self.task_id = task_id
        self.context_id = context_id
        self.message = message
        """The one that this run answers."""
        self.attempt = attempt
        """1, or more when an earlier attempt was interrupted."""
        self.history = history
        """The task's messages so far, oldest first, with the one above."""
        self.conversation = conversation
        """What was said in the context before this task: messages, results, replies; the newest 20 turns."""
        self.metadata = metadata or {}
        """Of the request that made the task."""
        self.inbox: list[Message] = []
        """Messages that arrived while the run was under way."""
        self.cancelled = False
        """Nobody wants the result any more. Async agents are stopped; sync ones at their next yield."""

    @property
    def text(self) -> str:
        """The text of the message."""
        return self.message.text

    @property
    def data(self) -> Any:
        """The value of the message's first data part, or None."""
        return next((part.data for part in self.message.parts if part.data is not UNSET), None)

    def status(self, *content: Any) -> Say:
        return Say(parts_of(content))

    def ask(self, *content: Any) -> Ask:
        return Ask(parts_of(content))

    def ask_credentials(self, *content: Any) -> Ask:
        return Ask(parts_of(content), credentials=True)

    def artifact(
        self, *content: Any, id: str | None = None, name: str | None = None, description: str | None = None,
        metadata: Json | None = None, last: bool = False,
    ) -> Chunk:  # fmt: skip
        """A chunk of a named artifact; the id defaults to the name."""
        return Chunk(
            parts_of(content), artifact_id=id or name, name=name, description=description, metadata=metadata, last=last
        )

    def reply(self, *content: Any) -> Reply:
        return Reply(parts_of(content))

    def reject(self, *content: Any) -> Reject:
        return Reject(parts_of(content))


def parts_of(content: tuple[Any, ...]) -> tuple[Part, ...]:
    """Text, bytes, data and parts as parts. Raises TypeError for anything else."""
    return tuple(part_of(value) for value in content)


def part_of(value: Any) -> Part:
    match value:
        case Part():
            return value
        case str():
            return Part(text=value, media_type="text/plain")
        case bytes():
            return Part(raw=value, media_type="application/octet-stream")
        case dict() | list() | int() | float() | bool():
            return Part(data=value, media_type="application/json")
        case _:
            raise TypeError(f"an agent may give text, bytes, JSON data, Part or Artifact, not {type(value).__name__}")


def action_of(value: Any) -> Action:
    """What a yielded or returned value means. Raises TypeError for what means nothing."""
    action = _action_of(value)
    if not action.parts:
        raise TypeError(f"{type(action).__name__} has no content: give it at least one part")
    if isinstance(action, Chunk) and not isinstance(action.artifact_id, str | None):
        raise TypeError(f"the id of an artifact must be a string, not {type(action.artifact_id).__name__}")
    return action


def _action_of(value: Any) -> Action:
    match value:
        case Say() | Ask() | Chunk() | Reply() | Reject():
            return value
        case Artifact():
            return Chunk(
                value.parts,
                artifact_id=value.artifact_id,
                name=value.name,
                description=value.description,
                metadata=value.metadata,
            )
        case _:
            return Chunk((part_of(value),))
