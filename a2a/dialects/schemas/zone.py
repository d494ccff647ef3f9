"""The JSON of zones as types. Calls are checked against them, and the published JSON Schemas are made of them."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from a2a.dialects.json.members import MAX_PARTS
from a2a.dialects.schemas.adr import complete
from a2a.params import Text
from a2a.types import Json

KEY = r"^[A-Za-z0-9._:-]{1,128}$"
"""The pattern of an idempotency key."""
MAX_TOKEN = 4_096
"""Characters of the token of a bot. Tokens of chats have some hundreds."""
Status = Literal["success", "accepted", "input_required", "error"]


class AttachmentParams(Struct, kw_only=True):
    """A file of the message: its content, or the address at which the agent finds it. Further members are ignored."""

    name: str | None = None
    mimetype: str | None = None
    size: Annotated[int, Meta(ge=0)] | None = None
    """The bytes of the file. One above the limit is skipped."""
    url: str | None = None
    content: str | None = None
    """The content in base64."""


class ExecuteParams(Struct, kw_only=True):
    """A message of a chat to an agent. Further members are ignored."""

    channel: Annotated[str, Meta(min_length=1, max_length=255)]
    text: str
    bot_token: Annotated[Text, Meta(max_length=MAX_TOKEN)]
    """The token by which the agent may read from the chat. It is never stored in clear, and never sent back."""
    correlation_id: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    """The caller's id of the whole exchange; that of the task if it is absent."""
    thread_ts: str | None = None
    """The thread of the message. Messages of one thread are one conversation."""
    conversation: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    """The conversation of the message, in place of the thread. The verification zone names one for each of its callers,
    because the execution zone knows them all by one key."""
    attachments: Annotated[list[AttachmentParams], Meta(max_length=MAX_PARTS)] | None = None
    team_id: str | None = None
    user_id: str | None = None
    agent: Text | None = None
    """The agent to execute the task; the server's default if it is absent."""
    task_id: Text | None = None
    """The task whose question the message answers; a new task begins if it is absent."""
    wait: bool | Annotated[float, Meta(ge=0, le=3600)] | None = None
    """Seconds to wait for the outcome: after them the call is answered with the state so far. False for none, true or
    absent for as many as it takes."""
    idempotency_key: Annotated[str, Meta(pattern=KEY)] | None = None
    """The id of the call. The same call under the same id is done once, and gets the outcome of the first."""


class GetParams(Struct, kw_only=True):
    """The task of a call that was accepted."""

    task_id: Text


class CardParams(Struct, kw_only=True):
    """No params are needed."""


class Skipped(Struct, kw_only=True):
    """An attachment that the agent did not get."""

    name: str
    reason: str


class ExecuteResult(Struct, kw_only=True):
    """The outcome of a task, or its state so far."""

    status: Status
    response_text: str
    """The text of the agent; with `accepted` the text so far, with `input_required` its question."""
    correlation_id: str
    task_id: str
    data: list[Any] | UnsetType = UNSET
    files: list[Json] | UnsetType = UNSET
    skipped_attachments: list[Skipped] | UnsetType = UNSET
    error: "ErrorObject | UnsetType" = UNSET
    """The error, for an agent whose failures are results (`status` is `error`)."""


class ErrorObject(Struct, kw_only=True):
    """An error of a call."""

    code: int
    message: str
    data: Json | UnsetType = UNSET


# ------------------------------------------------------------------- schemas


class ExecuteCall(Struct, kw_only=True):
    """A call of execute_task."""

    jsonrpc: Literal["2.0"]
    id: str | int
    method: Literal["execute_task"]
    params: ExecuteParams


class GetCall(Struct, kw_only=True):
    """A call of get_task."""

    jsonrpc: Literal["2.0"]
    id: str | int
    method: Literal["get_task"]
    params: GetParams


class Answer(Struct, kw_only=True):
    """The answer to a call that succeeds."""

    jsonrpc: Literal["2.0"]
    id: str | int | None
    result: ExecuteResult


class ErrorAnswer(Struct, kw_only=True):
    """The answer to a call that failed or was refused."""

    jsonrpc: Literal["2.0"]
    id: str | int | None
    error: ErrorObject


_FILES: dict[str, list[type[Struct]]] = {
    "execute_task": [ExecuteCall, Answer],
    "get_task": [GetCall, Answer],
    "errors": [ErrorAnswer],
}
SCHEMAS: dict[str, Json] = {
    name: {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"Zones: {name}"} | complete(kinds)
    for name, kinds in _FILES.items()
}
"""The published schemas, by the name of their file."""
