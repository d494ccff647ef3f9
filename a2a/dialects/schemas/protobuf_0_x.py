"""The calls and answers of A2A 0.x over REST, as types: those of its protobuf, and those with `kind`."""

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType

from a2a.dialects.json.protobuf_0_x import PROTO_STATES
from a2a.dialects.schemas import answers_0_x as kind
from a2a.dialects.schemas import answers_1_0
from a2a.dialects.schemas.values import Closed, Count, Instant, Texts, one_of
from a2a.dialects.webhook_fields import ConfigId, Credentials, Header, Scheme, Url
from a2a.params import INT32, Base64, Text, rule, whole
from a2a.types import Json

# ---------------------------------------------------------------- requests


class FileParams(Struct, rename="camel"):
    file_with_bytes: Base64 | None = None
    file_with_uri: str | None = None
    bytes: Base64 | None = None
    uri: str | None = None
    name: str | None = None
    mime_type: str | None = None


class DataParams(Struct):
    data: Json | None = None


class PartParams(Struct, rename="camel"):
    text: str | None = None
    file: FileParams | None = None
    data: DataParams | None = None
    metadata: Json | None = None


class MessageParams(Struct, rename="camel"):
    message_id: Text
    role: Annotated[str | int, rule(enum=["ROLE_USER", 1])]
    content: Annotated[list[PartParams], rule(minItems=1, maxItems=1000)]
    context_id: str | None = None
    task_id: str | None = None
    metadata: Json | None = None
    extensions: list[str] | None = None


class AuthenticationParams(Struct, rename="camel"):
    schemes: Annotated[list[Scheme], rule(maxItems=8)] = []
    credentials: Credentials | None = None


class ConfigParams(Struct, rename="camel"):
    url: Url
    id: ConfigId | None = None
    token: Header | None = None
    authentication: AuthenticationParams | None = None


class ConfigurationParams(Struct, rename="camel"):
    accepted_output_modes: list[str] | None = None
    history_length: Annotated[int | float | str | None, whole()] = None
    blocking: bool | None = None
    push_notification: ConfigParams | None = None


class SendParams(Struct, rename="camel"):
    message: MessageParams | None = None
    request: MessageParams | None = None
    configuration: ConfigurationParams | None = None
    metadata: Json | None = None


SEND = Annotated[SendParams, one_of("message", "request")]
"""The params of a send. 0.2.6 calls the message `request`."""


class TaskParams(Struct, rename="camel"):
    id: Text
    metadata: Json | None = None


class GetParams(TaskParams):
    history_length: Annotated[int | float | None, rule(multipleOf=1, minimum=0, maximum=INT32)] = None


class NamedConfigParams(Struct, rename="camel"):
    push_notification_config: ConfigParams
    name: str | None = None


class SetParams(Struct, rename="camel"):
    config: NamedConfigParams | None = None
    push_notification_config: ConfigParams | None = None
    config_id: ConfigId | None = None


SET = Annotated[SetParams, one_of("config", "pushNotificationConfig")]


class KindSetParams(Struct, rename="camel"):
    config: ConfigParams
    config_id: ConfigId | None = None


class ConfigIdParams(Struct, rename="camel"):
    id: Text
    push_notification_config_id: Text


# ------------------------------------------------------------------- tasks


class FileContent(Closed, kw_only=True):
    """A file, by its bytes or by its address."""

    file_with_bytes: Base64 | UnsetType = UNSET
    file_with_uri: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


class DataContent(Closed):
    """A piece of data."""

    data: Json


class Part(Closed, kw_only=True):
    """A piece of content: a text, a file, or data."""

    text: str | UnsetType = UNSET
    file: Annotated[FileContent, one_of("fileWithBytes", "fileWithUri")] | UnsetType = UNSET
    data: DataContent | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


Parts = Annotated[list[Annotated[Part, one_of("text", "file", "data")]], rule(minItems=1)]


class Message(Closed, kw_only=True):
    """A message of a caller or an agent."""

    message_id: str
    role: Annotated[str, rule(enum=["ROLE_USER", "ROLE_AGENT"])]
    content: Parts
    context_id: str | UnsetType = UNSET
    task_id: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET
    extensions: Texts | UnsetType = UNSET


class Artifact(Closed, kw_only=True):
    """A result of a task."""

    artifact_id: str
    parts: Parts
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET
    extensions: Texts | UnsetType = UNSET


class TaskStatus(Closed, kw_only=True):
    """The state of a task, its time, and the message about it."""

    state: Annotated[str, rule(enum=list(PROTO_STATES.values()))]
    timestamp: Instant
    message: Message | UnsetType = UNSET


class Task(Closed, kw_only=True):
    """A task. Members that are empty are absent."""

    id: str
    context_id: str
    status: TaskStatus
    artifacts: Annotated[list[Artifact], rule(minItems=1)] | UnsetType = UNSET
    history: Annotated[list[Message], rule(minItems=1)] | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


class TaskPage(Closed):
    """A page of a list of tasks."""

    tasks: Annotated[list[Task], rule(maxItems=100)]
    next_cursor: str
    total_size: Count


class TaskStatusUpdateEvent(Closed, kw_only=True):
    """A change of the status."""

    task_id: str
    context_id: str
    status: TaskStatus
    final: bool | UnsetType = UNSET


class TaskArtifactUpdateEvent(Closed, kw_only=True):
    """An artifact, or a piece of one."""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool | UnsetType = UNSET
    last_chunk: bool | UnsetType = UNSET


class SendMessageResponse(Closed):
    """A task, or a direct reply."""

    task: Task | UnsetType = UNSET
    message: Message | UnsetType = UNSET


class StreamResponse(Closed, kw_only=True):
    """An event of a stream."""

    task: Task | UnsetType = UNSET
    message: Message | UnsetType = UNSET
    status_update: TaskStatusUpdateEvent | UnsetType = UNSET
    artifact_update: TaskArtifactUpdateEvent | UnsetType = UNSET


class KindSendMessageResponse(Closed):
    """A task, or a direct reply, in the JSON with `kind`."""

    task: kind.Task | UnsetType = UNSET
    message: kind.Message | UnsetType = UNSET


class KindStreamResponse(Closed, kw_only=True):
    """An event of a stream, in the JSON with `kind`."""

    task: kind.Task | UnsetType = UNSET
    message: kind.Message | UnsetType = UNSET
    status_update: kind.TaskStatusUpdateEvent | UnsetType = UNSET
    artifact_update: kind.TaskArtifactUpdateEvent | UnsetType = UNSET


_EVENTS = one_of("task", "message", "statusUpdate", "artifactUpdate")
SEND_RESULT = Annotated[SendMessageResponse, one_of("task", "message")]
EVENT = Annotated[StreamResponse, _EVENTS]
KIND_SEND_RESULT = Annotated[KindSendMessageResponse, one_of("task", "message")]
KIND_EVENT = Annotated[KindStreamResponse, _EVENTS]

# ---------------------------------------------------------------- webhooks


class TaskPushNotificationConfig(Closed):
    """A webhook with its name, which contains the task."""

    name: str
    push_notification_config: kind.PushNotificationConfig


class PushNotificationConfigPage(Closed):
    """The webhooks of a task."""

    configs: list[TaskPushNotificationConfig]


# ---------------------------------------------------------- errors and card


class RestError(Closed):
    """The body of an error, with the members that the official clients of 0.3 read: code, message and type."""

    error: answers_1_0.Status
    code: int
    message: str
    type: str


class HttpScheme(kind.HttpAuthSecurityScheme, tag_field="type", tag="http"):
    """An HTTP authentication scheme, in both forms."""

    http_auth_security_scheme: answers_1_0.HttpAuthSecurityScheme | UnsetType = UNSET


class KeyScheme(kind.ApiKeySecurityScheme, tag_field="type", tag="apiKey"):
    """A key in a header, in both forms."""

    api_key_security_scheme: answers_1_0.ApiKeySecurityScheme | UnsetType = UNSET


class OpenIdConnectScheme(kind.OpenIdConnectSecurityScheme, tag_field="type", tag="openIdConnect"):
    """Tokens of an issuer of OpenID Connect, in both forms."""

    open_id_connect_security_scheme: answers_1_0.OpenIdConnectSecurityScheme | UnsetType = UNSET


class OAuth2Scheme(kind.OAuth2SecurityScheme, tag_field="type", tag="oauth2"):
    """Tokens of OAuth 2.0, in both forms."""

    oauth2_security_scheme: answers_1_0.OAuth2SecurityScheme | UnsetType = UNSET


class MutualTLSScheme(kind.MutualTLSSecurityScheme, tag_field="type", tag="mutualTLS"):
    """A certificate of the client in TLS, in both forms."""

    mtls_security_scheme: answers_1_0.MutualTlsSecurityScheme | UnsetType = UNSET


CardScheme = HttpScheme | KeyScheme | OpenIdConnectScheme | OAuth2Scheme | MutualTLSScheme


class AgentCard(kind.CardMembers, kw_only=True):
    """The card of an agent. Its security schemes are in both forms."""

    security_schemes: dict[str, CardScheme] | UnsetType = UNSET
