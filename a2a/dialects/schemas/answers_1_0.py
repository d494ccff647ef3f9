"""The answers of A2A 1.0, as types: results, events of streams, errors and cards."""

from typing import Annotated, Any

from msgspec import UNSET, Struct, UnsetType

from a2a.dialects.json.json_1_0 import ROLES, STATES
from a2a.dialects.json.security import MEMBERS
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
from a2a.types import Json

# ------------------------------------------------------------------- tasks


class Part(Closed, kw_only=True):
    """A piece of content: text, the bytes of a file, its address, or data (A2A 1.0, 4.1.6)."""

    text: str | UnsetType = UNSET
    raw: Base64 | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any | UnsetType = UNSET
    filename: str | UnsetType = UNSET
    media_type: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


Parts = Annotated[list[Annotated[Part, one_of("text", "raw", "url", "data")]], rule(minItems=1)]


class Message(Closed, kw_only=True):
    """A message of a caller or an agent (A2A 1.0, 4.1.4)."""

    message_id: str
    role: Annotated[str, rule(enum=list(ROLES.values()))]
    parts: Parts
    context_id: str | UnsetType = UNSET
    task_id: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET
    extensions: Texts | UnsetType = UNSET
    reference_task_ids: Texts | UnsetType = UNSET


class Artifact(Closed, kw_only=True):
    """A result of a task (A2A 1.0, 4.1.7)."""

    artifact_id: str
    parts: Parts
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET
    extensions: Texts | UnsetType = UNSET


class TaskStatus(Closed, kw_only=True):
    """The state of a task, its time, and the message about it (A2A 1.0, 4.1.2)."""

    state: Annotated[str, rule(enum=list(STATES.values()))]
    timestamp: Instant
    message: Message | UnsetType = UNSET


class Task(Closed, kw_only=True):
    """A task (A2A 1.0, 4.1.1). Empty lists are absent, apart from artifacts of a list that includes them."""

    id: str
    context_id: str
    status: TaskStatus
    artifacts: list[Artifact] | UnsetType = UNSET
    history: Annotated[list[Message], rule(minItems=1)] | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


class SendMessageResponse(Closed):
    """A task, or a direct reply (A2A 1.0, 3.1.1)."""

    task: Task | UnsetType = UNSET
    message: Message | UnsetType = UNSET


class TaskPage(Closed):
    """A page of a list of tasks (A2A 1.0, 3.1.4)."""

    tasks: Annotated[list[Task], rule(maxItems=100)]
    next_page_token: str
    page_size: Count
    total_size: Count


class TaskStatusUpdateEvent(Closed):
    """A change of the status (A2A 1.0, 4.2.1)."""

    task_id: str
    context_id: str
    status: TaskStatus


class TaskArtifactUpdateEvent(Closed):
    """An artifact, or a piece of one (A2A 1.0, 4.2.2)."""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool | UnsetType = UNSET
    last_chunk: bool | UnsetType = UNSET


class StreamResponse(Closed, kw_only=True):
    """An event of a stream, and the body of a delivery (A2A 1.0, 3.2.3)."""

    task: Task | UnsetType = UNSET
    message: Message | UnsetType = UNSET
    status_update: TaskStatusUpdateEvent | UnsetType = UNSET
    artifact_update: TaskArtifactUpdateEvent | UnsetType = UNSET


SEND_RESULT = Annotated[SendMessageResponse, one_of("task", "message")]
EVENT = Annotated[StreamResponse, one_of("task", "message", "statusUpdate", "artifactUpdate")]

# ---------------------------------------------------------------- webhooks


class AuthenticationInfo(Closed):
    """The authentication of deliveries, without its credentials (A2A 1.0, 4.3.2)."""

    scheme: str


class TaskPushNotificationConfig(Closed):
    """A webhook (A2A 1.0, 4.3.1). Only the answer to its registration has the token."""

    id: str
    task_id: str
    url: str
    token: str | UnsetType = UNSET
    authentication: AuthenticationInfo | UnsetType = UNSET


class PushNotificationConfigPage(Closed):
    """A page of the webhooks of a task (A2A 1.0, 3.1.9)."""

    configs: list[TaskPushNotificationConfig]
    next_page_token: str


class Empty(Closed):
    """An object without members."""


# ------------------------------------------------------------------ errors


class ErrorInfo(Closed, tag_field="@type", tag="type.googleapis.com/google.rpc.ErrorInfo"):
    """The reason of an error, and its facts."""

    reason: str
    domain: Annotated[str, rule(const="a2a-protocol.org")]
    metadata: dict[str, str] | UnsetType = UNSET


class BadRequest(Closed, tag_field="@type", tag="type.googleapis.com/google.rpc.BadRequest"):
    """The fields that are wrong."""

    field_violations: Annotated[list[Violation], rule(minItems=1)]


Details = Annotated[list[ErrorInfo | BadRequest], rule(minItems=1, maxItems=2)]


class Error(Closed):
    """The error object of a call (A2A 1.0, 9.5). An error of JSON-RPC without facts has no data."""

    code: int
    message: str
    data: Details | UnsetType = UNSET


class Status(Closed):
    """An error over REST (A2A 1.0, 11.6): `code` is the HTTP status, and `status` its name in gRPC."""

    code: int
    status: str
    message: str
    details: Details


class RestError(Closed):
    """The body of an error over REST."""

    error: Status


# ------------------------------------------------------------------- cards


class AgentInterface(Closed):
    """An address of the agent, with its binding and version (A2A 1.0, 4.4.6)."""

    url: str
    protocol_binding: str
    protocol_version: str
    tenant: str | UnsetType = UNSET


class AgentCapabilities(Closed):
    """The optional capabilities (A2A 1.0, 4.4.3)."""

    streaming: bool
    push_notifications: bool
    extended_agent_card: bool
    extensions: Annotated[list[Extension], rule(minItems=1)] | UnsetType = UNSET


class ScopeList(Struct, forbid_unknown_fields=True):
    """The scopes that a key needs. ProtoJSON omits the list if it is empty."""

    list: Texts | UnsetType = UNSET


class SecurityRequirement(Closed):
    """The schemes that meet a requirement together."""

    schemes: dict[str, ScopeList]


class AgentSkill(Skill):
    """A capability of an agent (A2A 1.0, 4.4.5)."""

    security_requirements: list[SecurityRequirement] | UnsetType = UNSET


class HttpAuthSecurityScheme(Closed):
    """An HTTP authentication scheme (A2A 1.0, 4.5.3)."""

    scheme: str
    bearer_format: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class ApiKeySecurityScheme(Closed):
    """A key in a header (A2A 1.0, 4.5.2)."""

    location: Annotated[str, rule(const="header")]
    name: str
    description: str | UnsetType = UNSET


class OAuth2SecurityScheme(Closed):
    """Tokens of OAuth 2.0, got by one of the flows (A2A 1.0, 4.5.4)."""

    flows: OAuthFlows
    oauth2_metadata_url: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class OpenIdConnectSecurityScheme(Closed):
    """Tokens of an issuer of OpenID Connect (A2A 1.0, 4.5.5)."""

    open_id_connect_url: str
    description: str | UnsetType = UNSET


class MutualTlsSecurityScheme(Closed):
    """A certificate of the client in TLS (A2A 1.0, 4.5.6)."""

    description: str | UnsetType = UNSET


class SecurityScheme(Closed):
    """A way to authenticate (A2A 1.0, 4.5.1)."""

    http_auth_security_scheme: HttpAuthSecurityScheme | UnsetType = UNSET
    api_key_security_scheme: ApiKeySecurityScheme | UnsetType = UNSET
    oauth2_security_scheme: OAuth2SecurityScheme | UnsetType = UNSET
    open_id_connect_security_scheme: OpenIdConnectSecurityScheme | UnsetType = UNSET
    mtls_security_scheme: MutualTlsSecurityScheme | UnsetType = UNSET


ONE_KIND = one_of(*MEMBERS.values())
"""The rule that a scheme is of one kind."""
Scheme = Annotated[SecurityScheme, ONE_KIND]


class CardMembers(About, kw_only=True):
    """The members of a card, without its authentication schemes."""

    supported_interfaces: Annotated[list[AgentInterface], rule(minItems=1)]
    capabilities: AgentCapabilities
    skills: list[AgentSkill]
    security_requirements: list[SecurityRequirement] | UnsetType = UNSET


class AgentCard(CardMembers, kw_only=True):
    """The card of an agent (A2A 1.0, 4.4.1)."""

    security_schemes: dict[str, Scheme] | UnsetType = UNSET
