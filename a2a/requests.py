"""Requests: a frozen class for each operation. Dialects make them; tasks_app/operations grants them.

The docstring of a class is its text in docs/reference/methods.md.
"""

from datetime import datetime
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from a2a.states import TaskState
from a2a.types import Json, Message, PushConfig


class Request(Struct, frozen=True, kw_only=True):
    """The base of all requests. The tenant is a routing key, never a permission (docs/protocol.md#tenants)."""

    streaming: ClassVar[bool] = False
    """The answer is a stream of events."""
    changes: ClassVar[bool] = False
    """The operation may change something, so it is recorded together with its change."""

    tenant: str | None = None


class SendMessage(Request, frozen=True, kw_only=True):
    """Give an agent a message, which begins a task, continues one, or gets a direct reply (A2A 1.0, 3.1.1). The call
    waits until the task ends or asks back, unless `returnImmediately` is set (0.x: `"blocking": false`).
    """

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
    """Give an agent a message and follow its task live, as server-sent events. The `id:` of an event is the task's
    sequence number (A2A 1.0, 3.1.2).
    """

    streaming: ClassVar[bool] = True

    after: int | None = None
    """The last sequence number the caller has seen (Last-Event-ID)."""


class GetTask(Request, frozen=True, kw_only=True):
    """Return a task as it is now (A2A 1.0, 3.1.3)."""

    id: str
    history_length: int | None = None


class ListTasks(Request, frozen=True, kw_only=True):
    """Return a page of the caller's tasks, newest status first. Totals are exact up to 1,000 (A2A 1.0, 3.1.4)."""

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
    """Follow a task that exists: the task as of `Last-Event-ID`, then the rest. In 0.x a question ends the stream, with
    `final` (A2A 1.0, 3.1.6).
    """

    streaming: ClassVar[bool] = True

    id: str
    after: int | None = None
    """The last sequence number the caller has seen (Last-Event-ID)."""
    closes: bool = False
    """Answer with a task that has ended instead of refusing it, and end the stream at a question (A2A 0.x)."""


class CreatePushConfig(Request, frozen=True, kw_only=True):
    """Register a webhook for a task, or replace the one of that id. A task may have ten, until it ends (A2A 1.0,
    3.1.7).
    """

    changes: ClassVar[bool] = True

    task_id: str
    config: PushConfig


class GetPushConfig(Request, frozen=True, kw_only=True):
    """Return a webhook of a task (A2A 1.0, 3.1.8)."""

    task_id: str
    id: str | None
    """None is the task's default, or its only one (A2A 0.x)."""
    or_default: bool = False
    """Take the default too if there is no webhook of this id."""


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
    """Take the task's default if there is no webhook of this id (A2A 0.x)."""


class GetExtendedCard(Request, frozen=True, kw_only=True):
    """Return the card with all that the scopes of this caller allow (A2A 1.0, 3.1.11)."""

    address: str = ""
    """Where the server was reached, for the URLs on the card; empty if that must not be told."""


def delivered_in(language: str, request: Request) -> Request:
    """Return the request with the language of the deliveries, if it registers a webhook."""
    if isinstance(request, SendMessage) and request.push_config:
        return replace(request, push_config=replace(request.push_config, language=language))
    if isinstance(request, CreatePushConfig):
        return replace(request, config=replace(request.config, language=language))
    return request
