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
    """Chosen by the sender; the idempotency key of a send."""
    role: Role
    parts: tuple[Part, ...]
    context_id: str | None = None
    task_id: str | None = None
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text parts, joined by line ends."""
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
    """A unit of work: the fold of its events."""

    id: str
    context_id: str
    status: Status
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()
    """Messages, oldest first, without the message of the current status."""
    metadata: Json | None = None


class PushConfig(Struct, frozen=True, kw_only=True):
    """A webhook of a task."""

    id: str | None = None
    """Unique in its task; None until the server assigns one."""
    task_id: str = ""
    url: str
    token: str | None = None
    """Sent with each delivery. The owner sees it once, in the answer to the registration."""
    schemes: tuple[str, ...] = ()
    """Authentication schemes of the credentials; deliveries use the first."""
    credentials: str | None = None
    """Never part of an answer."""
    language: str = ""
    """The name of the language of its deliveries; the door sets it."""
    path: str = "url"
    """Path of the address in the params, for error messages."""


class Skill(Struct, frozen=True, kw_only=True):
    """A capability of an agent, as listed on its card."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    """Scopes that a caller needs for this skill, where they differ from the card's."""
    listed: bool = True
    """True on public cards as well; False only on the extended cards of authenticated callers."""


class Extension(Struct, frozen=True, kw_only=True):
    """A protocol extension that an agent supports on request (A2A 1.0, 4.6)."""

    uri: str
    description: str | None = None
    required: bool = False
    """Calls that do not request the extension are refused."""
    params: Json | None = None


class Interface(Struct, frozen=True, kw_only=True):
    """A URL at which an agent accepts calls, with its binding and version."""

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
    """The organization that runs an agent."""

    organization: str
    url: str


class Card(Struct, frozen=True, kw_only=True):
    """The description of an agent. Each dialect encodes it in its own form."""

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
    """Schemes by name; any one of them suffices."""
    scopes: tuple[str, ...] = ()
    """Scopes that a caller needs for every skill of the card."""
    provider: Provider | None = None
    documentation_url: str | None = None
    icon_url: str | None = None
