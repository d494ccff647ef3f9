"""The answers of A2A 0.2 and 0.3, as types: results, events of streams, errors and cards. `kind` names their type."""

from typing import Annotated

from msgspec import UNSET, UnsetType, field

from a2a.dialects.json.json_0_x import STATES
from a2a.dialects.schemas.values import (
    About,
    Base64,
    Closed,
    Count,
    Extension,
    Instant,
    OAuthFlows,
    Skill,
    Texts,
    Violation,
    one_of,
)
from a2a.params import rule
from a2a.types import Json, Role

# ------------------------------------------------------------------- tasks


class TextPart(Closed, tag_field="kind", tag="text"):
    """A text."""

    text: str
    metadata: Json | UnsetType = UNSET


class DataPart(Closed, tag_field="kind", tag="data"):
    """A piece of data, always an object."""

    data: Json
    metadata: Json | UnsetType = UNSET


class FileContent(Closed, kw_only=True):
    """A file, by its bytes or by its address."""

    bytes: Base64 | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class FilePart(Closed, tag_field="kind", tag="file"):
    """A file."""

    file: Annotated[FileContent, one_of("bytes", "uri")]
    metadata: Json | UnsetType = UNSET


Parts = Annotated[list[TextPart | DataPart | FilePart], rule(minItems=1)]


class Message(Closed, kw_only=True, tag_field="kind", tag="message"):
    """A message of a caller or an agent (A2A 0.3.0, 6.4)."""

    message_id: str
    role: Annotated[str, rule(enum=[role.value for role in Role])]
    parts: Parts
    context_id: str | UnsetType = UNSET
    task_id: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET
    extensions: Texts | UnsetType = UNSET
    reference_task_ids: Texts | UnsetType = UNSET


class Artifact(Closed, kw_only=True):
    """A result of a task (A2A 0.3.0, 6.7)."""

    artifact_id: str
    parts: Parts
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET
    extensions: Texts | UnsetType = UNSET


class TaskStatus(Closed, kw_only=True):
    """The state of a task, its time, and the message about it (A2A 0.3.0, 6.2)."""

    state: Annotated[str, rule(enum=list(STATES.values()))]
    timestamp: Instant
    message: Message | UnsetType = UNSET


class Task(Closed, kw_only=True, tag_field="kind", tag="task"):
    """A task (A2A 0.3.0, 6.1). Empty lists are absent, apart from artifacts of a list that includes them."""

    id: str
    context_id: str
    status: TaskStatus
    metadata: Json
    artifacts: list[Artifact] | UnsetType = UNSET
    history: Annotated[list[Message], rule(minItems=1)] | UnsetType = UNSET


class TaskPage(Closed):
    """A page of a list of tasks."""

    tasks: Annotated[list[Task], rule(maxItems=100)]
    next_cursor: str
    total_size: Count


class TaskStatusUpdateEvent(Closed, tag_field="kind", tag="status-update"):
    """A change of the status (A2A 0.3.0, 7.2.2)."""

    task_id: str
    context_id: str
    status: TaskStatus
    final: bool


class TaskArtifactUpdateEvent(Closed, tag_field="kind", tag="artifact-update"):
    """An artifact, or a piece of one (A2A 0.3.0, 7.2.3)."""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool
    last_chunk: bool


SEND_RESULT = Task | Message
EVENT = Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent


# ---------------------------------------------------------------- webhooks


class AuthenticationInfo(Closed):
    """The authentication of deliveries, without its credentials."""

    schemes: Texts


class PushNotificationConfig(Closed):
    """A webhook (A2A 0.3.0, 6.8). Only the answer to its registration has the token."""

    id: str
    url: str
    token: str | UnsetType = UNSET
    authentication: AuthenticationInfo | UnsetType = UNSET


class TaskPushNotificationConfig(Closed):
    """A webhook and its task (A2A 0.3.0, 6.10)."""

    task_id: str
    push_notification_config: PushNotificationConfig


# ------------------------------------------------------------------ errors


class Reason(Closed, forbid_unknown_fields=False):
    """The reason of an error, and the wrong fields. Facts are further members."""

    reason: str
    violations: Annotated[list[Violation], rule(minItems=1)] | UnsetType = UNSET


_FACTS = rule(properties={"violations": {}}, additionalProperties={"type": "string"})


class Error(Closed):
    """The error object of a call (A2A 0.3.0, 6.12). Its data has the reason, the facts and the wrong fields."""

    code: int
    message: str
    data: Annotated[Reason, _FACTS] | UnsetType = UNSET


# ------------------------------------------------------------------- cards


class AgentTransport(Closed):
    """An address of the agent, with its transport (A2A 0.3.0, 5.5.5)."""

    url: str
    transport: str


class AgentCapabilities(Closed):
    """The optional capabilities (A2A 0.3.0, 5.5.2)."""

    streaming: bool
    push_notifications: bool
    state_transition_history: bool
    extensions: Annotated[list[Extension], rule(minItems=1)] | UnsetType = UNSET


Requirements = list[dict[str, list[str]]]


class AgentSkill(Skill):
    """A capability of an agent (A2A 0.3.0, 5.5.4)."""

    security: Requirements | UnsetType = UNSET


class HttpAuthSecurityScheme(Closed, tag_field="type", tag="http"):
    """An HTTP authentication scheme."""

    scheme: str
    bearer_format: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class ApiKeySecurityScheme(Closed, kw_only=True, tag_field="type", tag="apiKey"):
    """A key in a header."""

    place: Annotated[str, rule(const="header")] = field(name="in")
    name: str
    description: str | UnsetType = UNSET


class OpenIdConnectSecurityScheme(Closed, tag_field="type", tag="openIdConnect"):
    """Tokens of an issuer of OpenID Connect."""

    open_id_connect_url: str
    description: str | UnsetType = UNSET


class OAuth2SecurityScheme(Closed, tag_field="type", tag="oauth2"):
    """Tokens of OAuth 2.0, got by one of the flows."""

    flows: OAuthFlows
    oauth2_metadata_url: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class MutualTLSSecurityScheme(Closed, tag_field="type", tag="mutualTLS"):
    """A certificate of the client in TLS."""

    description: str | UnsetType = UNSET


Scheme = (
    HttpAuthSecurityScheme
    | ApiKeySecurityScheme
    | OpenIdConnectSecurityScheme
    | OAuth2SecurityScheme
    | MutualTLSSecurityScheme
)


class CardMembers(About, kw_only=True):
    """The members of a card, without its authentication schemes."""

    protocol_version: str
    url: str
    preferred_transport: str
    additional_interfaces: list[AgentTransport]
    capabilities: AgentCapabilities
    skills: list[AgentSkill]
    supports_authenticated_extended_card: bool
    security: Requirements | UnsetType = UNSET


class AgentCard(CardMembers, kw_only=True):
    """The card of an agent (A2A 0.3.0, 5.5)."""

    security_schemes: dict[str, Scheme] | UnsetType = UNSET
