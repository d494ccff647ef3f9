"""The data model: tasks, messages, parts, artifacts, cards. Dialects decode JSON into these values and encode them.

The model is that of A2A 1.0, section 4; the dialects of 0.x translate. All values are frozen. Times are datetimes in
UTC, ids are opaque strings, and metadata is JSON.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from a2a.money import Cost
from a2a.states import TaskState

Json = dict[str, Any]


class Role(StrEnum):
    """The author of a message."""

    USER = "user"
    AGENT = "agent"


class Part(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of content. Exactly one of text, raw, url, data is set (A2A 1.0, 4.1.6)."""

    text: str | None = None
    raw: bytes | None = None
    """The bytes of a file, decoded from base64."""
    url: str | None = None
    data: Any | UnsetType = UNSET
    """Any JSON value. None is the value null; UNSET is absence."""
    filename: str | None = None
    media_type: str | None = None
    metadata: Json | None = None


class Message(Struct, frozen=True, kw_only=True):
    """A message of a caller or an agent (A2A 1.0, 4.1.4)."""

    message_id: str
    """The sender's name for the message, and the idempotency key of a send."""
    role: Role
    parts: tuple[Part, ...]
    context_id: str | None = None
    task_id: str | None = None
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The texts of all text parts, one a line."""
        return "\n".join(part.text for part in self.parts if part.text is not None)


class Artifact(Struct, frozen=True, kw_only=True):
    """A result of a task (A2A 1.0, 4.1.7)."""

    artifact_id: str
    """The id of the artifact, unique in its task."""
    parts: tuple[Part, ...]
    name: str | None = None
    description: str | None = None
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


class Status(Struct, frozen=True, kw_only=True):
    """The state of a task, the time of the last change, and the agent's message about it (A2A 1.0, 4.1.2)."""

    state: TaskState
    timestamp: datetime
    message: Message | None = None


class Task(Struct, frozen=True, kw_only=True):
    """A unit of work: the fold of its events (A2A 1.0, 4.1.1)."""

    id: str
    context_id: str
    status: Status
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()
    """All messages but that of the current status, oldest first."""
    metadata: Json | None = None


class PushConfig(Struct, frozen=True, kw_only=True):
    """A webhook of a task, which A2A calls a push notification config (A2A 1.0, 4.3.1)."""

    id: str | None = None
    """The caller's or the server's name for the webhook, unique in its task. None until the server assigns one."""
    task_id: str = ""
    url: str
    token: str | None = None
    """A text to send with each delivery. Only the answer to the registration contains it."""
    schemes: tuple[str, ...] = ()
    """Authentication schemes of the credentials. Deliveries use the first."""
    credentials: str | None = None
    """Credentials to send with each delivery. No answer contains them."""
    language: str = ""
    """The name of the language of its deliveries. The door sets it."""
    notices: int | None = None
    """The filter of its deliveries (a2a/notices.py); None for all events."""
    created_at: datetime | None = None
    """The time of its registration; None before it."""
    path: str = "url"
    """The path of the address in the params, for error messages."""


class Skill(Struct, frozen=True, kw_only=True):
    """A capability of an agent, as listed on its card (A2A 1.0, 4.4.5)."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    """Scopes that a caller needs for this skill. Empty where they are those of the card."""
    listed: bool = True
    """False for a skill that only the extended cards of authenticated callers show."""


class Extension(Struct, frozen=True, kw_only=True):
    """A protocol extension that an agent supports on request (A2A 1.0, 4.6)."""

    uri: str
    description: str | None = None
    required: bool = False
    """True to refuse calls that do not request the extension."""
    params: Json | None = None


SOCKET_BINDING = "urn:uuid:7d0a3c52-5b0e-4f0c-9a53-0c6f1c1d8e2b"
"""The binding of our WebSocket interfaces. A custom binding has a URI (A2A 1.0.1, 12.1), which never changes."""


class Interface(Struct, frozen=True, kw_only=True):
    """A URL at which an agent accepts calls, with its binding and version (A2A 1.0, 4.4.6)."""

    url: str
    binding: str
    """JSONRPC, HTTP+JSON, GRPC, or the URI of a custom binding."""
    version: str
    """The A2A version as Major.Minor."""
    tenant: str | None = None
    """The tenant that calls must name, where there is one (A2A 1.0, 4.4.6)."""


class OAuthFlow(Struct, frozen=True, kw_only=True):
    """A way to get tokens of OAuth 2.0 (A2A 1.0, 4.5.7). It is the authorization code flow if it has that URL, and else
    the client credentials flow."""

    token_url: str
    authorization_url: str | None = None
    refresh_url: str | None = None
    scopes: dict[str, str] = {}
    """The meaning of each scope, by its name."""
    pkce_required: bool = False


class SecurityScheme(Struct, frozen=True, kw_only=True):
    """A way to authenticate: an HTTP scheme, a key in a header, OpenID Connect, OAuth 2.0, or mutual TLS."""

    http_scheme: str | None = None
    bearer_format: str | None = None
    """The form of the tokens of the HTTP scheme Bearer."""
    header: str | None = None
    open_id_connect_url: str | None = None
    flow: OAuthFlow | None = None
    metadata_url: str | None = None
    """The metadata of the authorization server (RFC 8414), beside the flow."""
    mutual_tls: bool = False
    description: str | None = None


class Provider(Struct, frozen=True, kw_only=True):
    """The organization that runs an agent."""

    organization: str
    url: str


class Privacy(Struct, frozen=True, kw_only=True):
    """The personal data that an agent works with, as its author declares."""

    pii: bool
    """True if messages or results may have data that identifies a person."""
    phi: bool
    """True if messages or results may have data about the health of a person."""
    notes: str = ""


class Terms(Struct, frozen=True, kw_only=True):
    """The terms of use of an agent: limits, cost, privacy, and the way to authenticate."""

    input_tokens: int
    output_tokens: int
    latency: float
    """Seconds in which a call that waits is answered."""
    cost: Cost | None
    per_minute: int | None
    """Calls that one caller may make in a minute; None without a limit."""
    privacy: Privacy
    retention_days: int | None
    """Days after which nothing of a call is stored any more; None without a limit."""
    auth: Json
    inputs: Json | None = None
    """The JSON Schema of the arguments; None for an agent that takes a text."""


class Card(Struct, frozen=True, kw_only=True):
    """The description of an agent (A2A 1.0, 4.4.1). Each dialect encodes it in its own form."""

    name: str
    description: str
    version: str
    interfaces: tuple[Interface, ...]
    """The agent's URLs, the preferred one first."""
    skills: tuple[Skill, ...]
    input_modes: tuple[str, ...] = ("text/plain",)
    output_modes: tuple[str, ...] = ("text/plain",)
    streaming: bool = True
    push_notifications: bool = False
    extended_card: bool = False
    extensions: tuple[Extension, ...] = ()
    security_schemes: dict[str, SecurityScheme] = field(default_factory=dict)
    """Authentication schemes by name. A caller needs one of them."""
    scopes: tuple[str, ...] = ()
    """Scopes that a caller needs for every skill of the card."""
    provider: Provider | None = None
    documentation_url: str | None = None
    icon_url: str | None = None
    terms: Terms | None = None
    """The terms of use, for the cards that show them."""
