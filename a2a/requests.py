"""Requests: a frozen class for each operation. Languages decode them, and tasks_app/operations performs them.

The docstring of a class is its text in docs/reference/methods.md.
"""

from datetime import datetime
from enum import IntEnum
from typing import ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from a2a.shared_streams import ChunkRole
from a2a.states import TaskState
from a2a.types import Json, Message, Part, PushConfig


class Priority(IntEnum):
    """The priority that a caller gives a task among the tasks of the same owner.

    The task gets it added to the priority of its agent, which is from -1000 to 1000. The steps are wider than that, so
    the caller's choice comes first.
    """

    LOW = -3000
    NORMAL = 0
    HIGH = 3000
    URGENT = 6000


class Request(Struct, frozen=True, kw_only=True):
    """The base of all requests. The tenant is a routing key, never a permission (docs/protocol.md#tenants)."""

    streaming: ClassVar[bool] = False
    """True if the answer is a stream of events."""
    changes: ClassVar[bool] = False
    """True if the operation may change a row. The exchange is then recorded in the same transaction."""

    tenant: str | None = None
    """The tenant that the caller names; None for the caller's own."""


class SendMessage(Request, frozen=True, kw_only=True):
    """Send an agent a message, which begins a task, continues one, or gets a direct reply (A2A 1.0, 3.1.1). The call
    waits until the task ends or is interrupted, unless `returnImmediately` is set (0.x: `"blocking": false`).
    """

    changes: ClassVar[bool] = True

    message: Message
    return_immediately: bool = False
    """True to answer as soon as the task exists."""
    wait_seconds: float = float("inf")
    """Seconds after which a call that waits is answered with the task as it is."""
    history_length: int | None = None
    """Number of newest messages in the answer; None for all."""
    accepted_output_modes: tuple[str, ...] = ()
    """Media types and ranges that the caller accepts; empty for all."""
    push_config: PushConfig | None = None
    """A webhook to register for the task."""
    metadata: Json | None = None
    agent: str | None = None
    """The agent for a new task, in languages that name it outside of the metadata."""
    priority: Priority = Priority.NORMAL
    """The priority of a new task in the queue of its owner."""
    extensions: tuple[str, ...] = ()
    """URIs of the protocol extensions that the call requests. They come in a header, not in the params."""
    budget: int | None = None
    """The most that the caller pays for the task, in millionths of a dollar. It comes in a header."""
    queued: bool = False
    """True to begin a task that no agent has worked on yet: a quick agent is queued like any other."""


class StreamMessage(SendMessage, frozen=True, kw_only=True):
    """Send an agent a message and follow its task as a stream of server-sent events (A2A 1.0, 3.1.2). The `id:` of an
    event is its sequence number.
    """

    streaming: ClassVar[bool] = True

    after: int | None = None
    """The cursor of the caller (Last-Event-ID)."""


class Invoke(SendMessage, frozen=True, kw_only=True):
    """Call an agent or a skill by its name, with an object of arguments, and wait for the outcome of its task
    (ADR-002). `X-Request-ID` is the id of the call: the same call under the same id is answered the same, and is done
    once.
    """

    name: str
    """The name of an agent, or the id of a skill. At the address of an agent, any name: the agent gets it."""


class StreamInvoke(Invoke, frozen=True, kw_only=True):
    """Call an agent or a skill by its name, and follow its output as server-sent events of bare text (ADR-002)."""

    streaming: ClassVar[bool] = True

    after: int | None = None
    """The cursor of the caller (Last-Event-ID)."""


class Execute(SendMessage, frozen=True, kw_only=True):
    """Execute the task that a message of a chat describes (zones). The call waits for its outcome, unless the caller
    wants the id of the task, by which it polls. A call that is sent again under its idempotency key is done once.
    """

    secrets: dict[str, str] = {}
    """Secrets for the agent alone, such as the token of a bot. They are never part of the message."""


class Negotiate(Request, frozen=True, kw_only=True):
    """Ask what a call of some capabilities would get for a budget, before the call (ADR-002). Nothing is reserved."""

    capabilities: tuple[str, ...] = ()
    """Ids of skills and names of agents; empty for all skills of the agent."""
    budget: int | None = None
    """The most that the caller pays for one call, in millionths of a dollar; None for no limit."""


class GetTask(Request, frozen=True, kw_only=True):
    """Return a task as it is now (A2A 1.0, 3.1.3)."""

    id: str
    history_length: int | None = None
    include_artifacts: bool = True


class ListTasks(Request, frozen=True, kw_only=True):
    """Return a page of the caller's tasks, newest status first. Totals are exact up to 1,000 (A2A 1.0, 3.1.4)."""

    context_id: str | None = None
    state: TaskState | None = None
    page_size: int = 50
    page_token: str | None = None
    history_length: int | None = None
    since: datetime | None = None
    """The earliest time of a status on the page."""
    include_artifacts: bool = False


class CancelTask(Request, frozen=True, kw_only=True):
    """End a task before it ends by itself (A2A 1.0, 3.1.5)."""

    changes: ClassVar[bool] = True

    id: str
    metadata: Json | None = None
    repeatable: bool = False
    """True to answer with a task that is canceled already instead of an error."""


class SubscribeToTask(Request, frozen=True, kw_only=True):
    """Follow an existing task: the task as of `Last-Event-ID`, then all later events (A2A 1.0, 3.1.6). In 0.x a
    question ends the stream, with `final`.
    """

    streaming: ClassVar[bool] = True

    id: str
    after: int | None = None
    """The cursor of the caller (Last-Event-ID)."""
    closes: bool = False
    """True to answer with a task that has ended instead of an error, and to end the stream at a question (A2A 0.x)."""
    shows_end: bool = False
    """True to answer with a task that has ended instead of an error."""


class FollowTask(SubscribeToTask, frozen=True, kw_only=True):
    """Follow an existing task by notices of its changes. The answer is the task as of `Last-Event-ID`, and a notice of
    each later change that the filter lets pass comes behind it.
    """

    notices: int | None = None
    """The filter (a2a/notices.py); None for all changes."""


class CreatePushConfig(Request, frozen=True, kw_only=True):
    """Register a webhook for a task, or replace the webhook of that id (A2A 1.0, 3.1.7). A task has ten at most."""

    changes: ClassVar[bool] = True

    task_id: str
    config: PushConfig


class GetPushConfig(Request, frozen=True, kw_only=True):
    """Return a webhook of a task (A2A 1.0, 3.1.8)."""

    task_id: str
    id: str | None
    """The id of the webhook. None for the task's default, or for its only one (A2A 0.x)."""
    or_default: bool = False
    """True to fall back on the task's default if there is no webhook of this id."""


class ListPushConfigs(Request, frozen=True, kw_only=True):
    """Return a page of the webhooks of a task (A2A 1.0, 3.1.9)."""

    task_id: str
    page_size: int
    page_token: str | None = None


class DeletePushConfig(Request, frozen=True, kw_only=True):
    """Remove a webhook (A2A 1.0, 3.1.10)."""

    changes: ClassVar[bool] = True

    task_id: str
    id: str
    or_default: bool = False
    """True to fall back on the task's default if there is no webhook of this id (A2A 0.x)."""


class StartSharedStream(Request, frozen=True, kw_only=True):
    """Begin a shared stream with its participants, or resume one that is paused and add participants. The caller takes
    part in the streams that it begins.
    """

    changes: ClassVar[bool] = True

    stream_id: str | None = None
    """The stream to resume; None to begin one."""
    participants: tuple[str, ...] = ()
    """The names of agents of this server, and of accounts of the caller's tenant."""
    metadata: Json | None = None


class FollowSharedStream(StartSharedStream, frozen=True, kw_only=True):
    """Do what the beginning of a shared stream does, and follow its chunks. To follow an active one needs the right to
    read streams alone.
    """

    streaming: ClassVar[bool] = True

    after: int | None = None
    """The number of the last chunk that the caller has seen (Last-Event-ID); None for a stream's end as it is now."""


class SendToSharedStream(Request, frozen=True, kw_only=True):
    """Send a message to all participants of a shared stream. Each agent among them answers with chunks."""

    changes: ClassVar[bool] = True

    stream_id: str
    parts: tuple[Part, ...]
    role: ChunkRole


class SendChunk(SendToSharedStream, frozen=True, kw_only=True):
    """Send one piece of a message to a shared stream. No agent answers it. A chunk sent twice is stored once."""

    sequence: int
    """The caller's own number of the chunk."""
    is_last: bool = False


class EndSharedStream(Request, frozen=True, kw_only=True):
    """Close a shared stream for good, or pause it."""

    changes: ClassVar[bool] = True

    stream_id: str
    reason: str = ""
    pauses: bool = False
    """True to pause it, so that a participant may resume it."""


class NotifyOfTask(Request, frozen=True, kw_only=True):
    """Say that a task of a remote agent has changed. It is a hint: a relay that polls the task looks at once, and
    nothing else happens. The answer does not say whether a relay knows the task.
    """

    remote_id: str
    """The id of the task at the remote agent."""


class GetExtendedCard(Request, frozen=True, kw_only=True):
    """Return the card with all that the scopes of this caller allow (A2A 1.0, 3.1.11)."""

    address: str = ""
    """The base URL of the server, for the URLs on the card. Empty if the server must not name one."""


class Describe(Request, frozen=True, kw_only=True):
    """Return a description of what can be asked, for programs: OpenRPC for JSON-RPC, OpenAPI for all paths of HTTP."""

    form: Literal["openrpc", "openapi"] = "openrpc"
    endpoint: str = ""
    """The name of the endpoint of the call, for OpenRPC."""
    version: str | None = None
    """The A2A-Version of the call, whose methods OpenRPC lists; None for each method in its newest version."""
    address: str = ""
    """The base URL of the server. Empty if the server must not name one."""


def with_delivery_language(language: str, request: Request) -> Request:
    """Return the request. If it registers a webhook, the webhook gets deliveries in this language."""
    if isinstance(request, SendMessage) and request.push_config:
        return replace(request, push_config=replace(request.push_config, language=language))
    if isinstance(request, CreatePushConfig):
        return replace(request, config=replace(request.config, language=language))
    return request
