"""What can be asked, a frozen class an operation. Dialects make these; tasks_app/operations grants them."""

from datetime import datetime
from typing import ClassVar

from msgspec import Struct

from a2a.states import TaskState
from a2a.types import Json, Message, PushConfig


class Request(Struct, frozen=True, kw_only=True):
    """Any wish. The tenant is a routing key, never a permission (docs/protocol.md#tenants)."""

    streaming: ClassVar[bool] = False
    """The answer is a stream of events."""
    changes: ClassVar[bool] = False
    """The operation may change something, so it is recorded together with its change."""

    tenant: str | None = None


class SendMessage(Request, frozen=True, kw_only=True):
    """Give an agent a message: a new task, the next turn of one, or a bare reply (A2A 1.0, 3.1.1)."""

    changes: ClassVar[bool] = True

    message: Message
    return_immediately: bool = False
    """Answer as soon as the task exists."""
    history_length: int | None = None
    accepted_output_modes: tuple[str, ...] = ()
    push_config: PushConfig | None = None
    """A webhook to register for the task."""
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()
    """URIs of protocol extensions that the caller asks for; they come beside the params."""


class StreamMessage(SendMessage, frozen=True, kw_only=True):
    """The same, followed live (A2A 1.0, 3.1.2)."""

    streaming: ClassVar[bool] = True

    after: int | None = None
    """The last sequence number the caller has seen (Last-Event-ID)."""


class GetTask(Request, frozen=True, kw_only=True):
    """A task as it is now (A2A 1.0, 3.1.3)."""

    id: str
    history_length: int | None = None


class ListTasks(Request, frozen=True, kw_only=True):
    """One page of the caller's tasks, newest status first (A2A 1.0, 3.1.4)."""

    context_id: str | None = None
    state: TaskState | None = None
    page_size: int = 50
    page_token: str | None = None
    history_length: int | None = None
    since: datetime | None = None
    """Only tasks whose status is of this time or later."""
    include_artifacts: bool = False


class CancelTask(Request, frozen=True, kw_only=True):
    """End a task before it ends by itself (A2A 1.0, 3.1.5)."""

    changes: ClassVar[bool] = True

    id: str
    metadata: Json | None = None


class SubscribeToTask(Request, frozen=True, kw_only=True):
    """Follow a task that exists (A2A 1.0, 3.1.6)."""

    streaming: ClassVar[bool] = True

    id: str
    after: int | None = None
    """The last sequence number the caller has seen (Last-Event-ID)."""
    closes: bool = False
    """A task that has ended is answered, not refused, and a question ends the stream (A2A 0.x)."""


class CreatePushConfig(Request, frozen=True, kw_only=True):
    """Register a webhook for a task, or replace the one of that id (A2A 1.0, 3.1.7)."""

    changes: ClassVar[bool] = True

    task_id: str
    config: PushConfig


class GetPushConfig(Request, frozen=True, kw_only=True):
    """A webhook of a task (A2A 1.0, 3.1.8)."""

    task_id: str
    id: str | None
    """None is the task's default, or its only one (A2A 0.x)."""
    or_default: bool = False
    """That one too if there is none of this id."""


class ListPushConfigs(Request, frozen=True, kw_only=True):
    """One page of the webhooks of a task (A2A 1.0, 3.1.9)."""

    task_id: str
    page_size: int
    page_token: str | None = None


class DeletePushConfig(Request, frozen=True, kw_only=True):
    """No more deliveries to a webhook (A2A 1.0, 3.1.10)."""

    changes: ClassVar[bool] = True

    task_id: str
    id: str
    or_default: bool = False
    """The task's default if there is none of this id (A2A 0.x)."""


class GetExtendedCard(Request, frozen=True, kw_only=True):
    """The card for callers who are known: what they may use (A2A 1.0, 3.1.11)."""

    address: str = ""
    """Where the server was reached, for the URLs on the card; empty if that must not be told."""
