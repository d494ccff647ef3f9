"""The actions that an agent yields, and the conversion of any yielded value into an action."""

from typing import Any

from msgspec import Struct

from a2a.mistakes import WrongValue, check_members, check_part, wrong_value
from a2a.types import Artifact, Json, Part


class Say(Struct, frozen=True):
    """A progress report: the task stays working, and the parts describe the progress."""

    parts: tuple[Part, ...]
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()
    position: str | None = None
    """The position of the agent after this event, as in a chunk."""


class Ask(Struct, frozen=True):
    """A question to the caller: the task is interrupted until the next message."""

    parts: tuple[Part, ...]
    credentials: bool = False
    """True for a request for credentials."""
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


class Chunk(Struct, frozen=True):
    """Parts of an artifact. Each further chunk of an attempt is appended to the artifact."""

    parts: tuple[Part, ...]
    artifact_id: str | None = None
    """None for the default artifact of the run."""
    name: str | None = None
    description: str | None = None
    metadata: Json | None = None
    last: bool = False
    """True for the final chunk of the artifact."""
    extensions: tuple[str, ...] = ()
    """URIs of the extensions that contributed to the chunk."""
    append: bool | None = None
    """True to append to the artifact, False to replace it. With None the first chunk of an attempt replaces."""
    position: str | None = None
    """The place in the stream of another server up to which the agent has passed it on. It is stored together with the
    event, so that another attempt begins there. None: no change."""


class Reply(Struct, frozen=True):
    """A closing message. A quick agent answers a new conversation with it alone, without a task."""

    parts: tuple[Part, ...]
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


class Reject(Struct, frozen=True):
    """A refusal of the task by the agent."""

    parts: tuple[Part, ...]
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


Action = Say | Ask | Chunk | Reply | Reject
_MAKERS = {Say: "status", Ask: "ask", Chunk: "artifact", Reply: "reply", Reject: "reject"}
"""The method of Run that builds each action."""


def parts_of(content: tuple[Any, ...]) -> tuple[Part, ...]:
    """Return each value as a part. Raises WrongValue as `part_of` does."""
    return tuple(part_of(value) for value in content)


def part_of(value: Any) -> Part:
    """Return text, bytes, JSON data or a part as a part. Raises WrongValue for any other type."""
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
            raise wrong_value(value)


def action_of(value: Any) -> Action:
    """Return the action of a yielded or returned value. Raises WrongValue for an action without content, with an
    invalid part or with an invalid id, and for any other value that is not content."""
    action = _action_of(value)
    if not action.parts:
        raise WrongValue(f"gives run.{_MAKERS[type(action)]}() without content: give it at least one part")
    if isinstance(action, Chunk) and not isinstance(action.artifact_id, str | None):
        raise WrongValue(f"gives an artifact whose id is not a string, but of type {type(action.artifact_id).__name__}")
    check_members(f"run.{_MAKERS[type(action)]}()", action)
    for part in action.parts:
        check_part(part)
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
                extensions=value.extensions,
            )
        case _:
            return Chunk((part_of(value),))
