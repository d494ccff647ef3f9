"""ADR-002 on the client's side. The server's side is in a2a/dialects/adr.py.

A message is a call: its text is the argument `text`, and its data the other arguments. The agent of the request is the
method.
"""

from typing import Any

from msgspec import UNSET

from a2a import errors
from a2a.client.language import ClientLanguage, Operation
from a2a.client.reading import UNDATED
from a2a.client.refusals import Numbers
from a2a.client.updates import Update
from a2a.dialects.adr import LANGUAGE as OURS
from a2a.dialects.json.json_1_0 import decode_part
from a2a.errors import InvalidParams
from a2a.events import ArtifactAdded, StatusChanged
from a2a.requests import SendMessage, StreamMessage
from a2a.states import TaskState
from a2a.types import Artifact, Json, Message, Part, Role, Status, Task

_AWAY = (errors.UnknownAgent, errors.Unavailable)
"""The errors of one code, which the HTTP status tells apart."""
NUMBERS = Numbers(
    codes={cell.number: error.reason for error, cell in reversed(OURS.column.items()) if error not in _AWAY}
    | {-32603: errors.Internal.reason, -38009: errors.Unauthenticated.reason},
    statuses={OURS.column[error].status: error.reason for error in _AWAY},
)
"""The reasons by which errors are raised, since those of ADR-002 are fewer."""
TEXT = "text"
"""The id of the artifact with the text of a stream."""


def encode_call(request: SendMessage) -> Json:
    """Return the method and its arguments. Raises InvalidParams."""
    method = request.agent or (request.metadata or {}).get("skill") or (request.metadata or {}).get("agent")
    if not method:
        raise InvalidParams(("agent", "is needed: the method of a call is the name of an agent or a skill"))
    arguments: Json = {}
    for place, part in enumerate(request.message.parts):
        if part.text is not None:
            arguments[TEXT] = part.text
        elif part.data is not UNSET and isinstance(part.data, dict):
            arguments |= part.data
        else:
            raise InvalidParams((f"message.parts[{place}]", "must be a text or an object of data"))
    return {"method": method, "params": arguments}


def decode_outcome(wire: Json) -> Task | Message:
    """Return the task of a result, or the direct reply of an agent without a task."""
    data = tuple(Part(data=value) for value in wire.get("data", ()))
    files = tuple(decode_part(file) for file in wire.get("files", ()))
    parts = ((Part(text=wire["text"]),) if wire["text"] else ()) + data + files
    if not wire.get("task_id"):
        return Message(message_id="", role=Role.AGENT, parts=parts or (Part(text=""),))
    question = wire.get("question")
    message = Message(message_id="", role=Role.AGENT, parts=(Part(text=question),)) if question else None
    return Task(
        id=wire["task_id"],
        context_id=wire.get("context_id", ""),
        status=Status(state=TaskState(wire["status"]), timestamp=UNDATED, message=message),
        artifacts=(Artifact(artifact_id=TEXT, parts=parts),) if parts else (),
    )


def decode_update(wire: Any) -> Update:
    """Return the update of a text, or of the end of a stream. The stream does not name its task."""
    if wire is None:
        end = StatusChanged(status=Status(state=TaskState.COMPLETED, timestamp=UNDATED))
        return Update(event=end, task_id="", context_id="")
    piece = Artifact(artifact_id=TEXT, parts=(Part(text=wire),))
    return Update(event=ArtifactAdded(artifact=piece, append=True), task_id="", context_id="")


LANGUAGE = ClientLanguage(
    name=OURS.name,
    version="002",
    headers={},
    extensions_header="",
    operations={
        SendMessage: Operation(method="invoke", encode=encode_call, decode=decode_outcome),
        StreamMessage: Operation(method="invoke/stream", encode=encode_call, decode=decode_update),
    },
    update=decode_update,
    begins_with_task=False,
    numbers=NUMBERS,
    key_header=OURS.key_header,
)
