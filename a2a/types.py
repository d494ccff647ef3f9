"""The one model of A2A: tasks, messages, parts, artifacts, cards. Dialects turn JSON into them and back.

All are frozen. Times are aware UTC datetimes, ids are opaque strings, metadata is JSON. The data model is
A2A 1.0, section 4; what 0.x says otherwise is the business of its dialects.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from a2a.states import TaskState

Json = dict[str, Any]


class Role(StrEnum):
    """Who speaks."""

    USER = "user"
    AGENT = "agent"


class Part(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of content. Exactly one of text, raw, url, data is set (A2A 1.0, 4.1.6)."""

    text: str | None = None
    raw: bytes | None = None
    """The bytes of a file, not base64."""
    url: str | None = None
    data: Any | UnsetType = UNSET
    """Any JSON value; None is a value, UNSET is absence."""
    filename: str | None = None
    media_type: str | None = None
    metadata: Json | None = None


class Message(Struct, frozen=True, kw_only=True):
    """One turn of a conversation."""

    message_id: str
    """Made by the sender; the key of its idempotency."""
    role: Role
    parts: tuple[Part, ...]
    context_id: str | None = None
    task_id: str | None = None
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All text parts, joined by line ends."""
        return "\n".join(part.text for part in self.parts if part.text is not None)


class Artifact(Struct, frozen=True, kw_only=True):
    """A result of a task."""

    artifact_id: str
    """Unique in its task."""
    parts: tuple[Part, ...]
    name: str | None = None
    description: str | None = None
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


class Status(Struct, frozen=True, kw_only=True):
    """Where a task stands, since when, and what the agent says about it."""

    state: TaskState
    timestamp: datetime
    message: Message | None = None


class Task(Struct, frozen=True, kw_only=True):
    """A unit of work: what the fold of its events gives."""

    id: str
    context_id: str
    status: Status
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()
    """Oldest first; the current status message is not yet in it."""
    metadata: Json | None = None


class PushConfig(Struct, frozen=True, kw_only=True):
    """A webhook of a task."""

    id: str | None = None
    """Unique in its task; None until the server makes one."""
    task_id: str = ""
    url: str
    token: str | None = None
    """Sent with each delivery, and shown to its owner once: in the answer to the write."""
    schemes: tuple[str, ...] = ()
    """Of the credentials: the first is the one that is used."""
    credentials: str | None = None
    """Never shown again."""
    version: str
    """The A2A version it was registered in, which its deliveries are encoded in."""
    path: str = "url"
    """Where the address stood in the params."""


class Skill(Struct, frozen=True, kw_only=True):
    """Something an agent can do, as its card says."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    """Scopes that a caller needs for it, when they are others than the card's."""
    listed: bool = True
    """On public cards, too; else only on those for callers who are known."""


class Extension(Struct, frozen=True, kw_only=True):
    """An addition to the protocol that an agent speaks when it is asked to."""

    uri: str
    description: str | None = None
    required: bool = False
    """Callers that do not ask for it are refused."""
    params: Json | None = None


class Interface(Struct, frozen=True, kw_only=True):
    """A URL at which an agent is spoken to."""

    url: str
    binding: str
    """JSONRPC, HTTP+JSON, GRPC, or a URI for a custom one."""
    version: str
    """Major.Minor."""


class SecurityScheme(Struct, frozen=True, kw_only=True):
    """A way to authenticate: an HTTP scheme, or a key in a header."""

    http_scheme: str | None = None
    header: str | None = None
    description: str | None = None


class Provider(Struct, frozen=True, kw_only=True):
    """Who runs an agent."""

    organization: str
    url: str


class Card(Struct, frozen=True, kw_only=True):
    """What an agent says about itself; every dialect has its own shape of it."""

    name: str
    description: str
    version: str
    interfaces: tuple[Interface, ...]
    """Preferred first."""
    skills: tuple[Skill, ...]
    input_modes: tuple[str, ...] = ("text/plain",)
    output_modes: tuple[str, ...] = ("text/plain",)
    streaming: bool = True
    push_notifications: bool = False
    extended_card: bool = False
    extensions: tuple[Extension, ...] = ()
    security_schemes: dict[str, SecurityScheme] = field(default_factory=dict)
    """By name; each of them alone suffices."""
    scopes: tuple[str, ...] = ()
    """Scopes that a caller needs to use all of it."""
    provider: Provider | None = None
    documentation_url: str | None = None
    icon_url: str | None = None
