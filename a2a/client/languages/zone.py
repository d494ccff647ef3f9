"""Zones on the client's side. The server's side is in a2a/dialects/zone.py.

A message is the text of a chat with its attachments. The facts of the chat are in the metadata of the request and of
the task, under the same name as on the server.
"""

from base64 import b64encode
from math import isinf

from a2a.client.cards import decode_card
from a2a.client.language import ClientLanguage, Operation
from a2a.client.languages.v1_0 import filled
from a2a.client.reading import UNDATED
from a2a.client.refusals import Numbers, codes_of
from a2a.client.updates import Update
from a2a.dialects.json.json_1_0 import decode_part
from a2a.dialects.zone import LANGUAGE as OURS
from a2a.dialects.zone import MARK
from a2a.errors import InvalidParams
from a2a.requests import Execute, GetExtendedCard, GetTask
from a2a.states import TaskState
from a2a.types import Artifact, Json, Message, Part, Role, Status, Task

TEXT = "text"
"""The id of the artifact with the output of a task."""
_PARAM = "bot_token"
"""The param with the secret of a call."""
STATES = {
    "success": TaskState.COMPLETED,
    "accepted": TaskState.WORKING,
    "input_required": TaskState.INPUT_REQUIRED,
    "error": TaskState.FAILED,
}

# ---------------------------------------------------------------- requests


def encode_execute(request: Execute) -> Json:
    """Return the params of execute_task. Raises InvalidParams for what zones have no place for."""
    if request.message.context_id is not None:
        raise InvalidParams(("message.contextId", "has no place in zones: thread_ts names the conversation"))
    if _PARAM not in request.secrets:
        raise InvalidParams((_PARAM, "is required"))
    texts, attachments = [], []
    for place, part in enumerate(request.message.parts):
        if part.text is not None:
            texts.append(part.text)
        else:
            attachments.append(_attachment(part, f"message.parts[{place}]"))
    facts = (request.metadata or {}).get(MARK) or {}
    wait = not request.return_immediately if isinf(request.wait_seconds) else request.wait_seconds
    own = {"text": "\n".join(texts), _PARAM: request.secrets[_PARAM], "wait": wait}
    return {**facts, **own} | filled(
        attachments=attachments or None,
        agent=request.agent,
        task_id=request.message.task_id,
        idempotency_key=request.message.message_id or None,
    )


def _attachment(part: Part, field: str) -> Json:
    if part.raw is None and part.url is None:
        raise InvalidParams((field, "must be a text or a file"))
    content = None if part.raw is None else b64encode(part.raw).decode()
    size = (part.metadata or {}).get("size")
    return filled(name=part.filename, mimetype=part.media_type, size=size, content=content, url=part.url)


def encode_get(request: GetTask) -> Json:
    return {"task_id": request.id}


def encode_nothing(request: GetExtendedCard) -> Json:
    return {}


# ----------------------------------------------------------------- answers


def decode_outcome(wire: Json) -> Task:
    """Return the task of a result. A task that fails is an error instead, unless its agent has failures as results."""
    state, text = STATES[wire["status"]], wire["response_text"]
    question = text if state is TaskState.INPUT_REQUIRED else ""
    words = question or (wire.get("error") or {}).get("message")
    message = Message(message_id="", role=Role.AGENT, parts=(Part(text=words),)) if words else None
    parts = [Part(text=text)] if text and not question else []
    parts += [Part(data=value) for value in wire.get("data") or ()]
    parts += [decode_part(file) for file in wire.get("files") or ()]
    return Task(
        id=wire["task_id"],
        context_id="",
        status=Status(state=state, timestamp=UNDATED, message=message),
        artifacts=(Artifact(artifact_id=TEXT, parts=tuple(parts)),) if parts else (),
        metadata={MARK: {name: wire[name] for name in ("correlation_id", "skipped_attachments") if name in wire}},
    )


def decode_update(wire: Json) -> Update:
    """Raise InvalidParams: no call of zones is answered with a stream."""
    raise InvalidParams(("result", "is no event of a stream"))


LANGUAGE = ClientLanguage(
    name=OURS.name,
    version="1.0",
    headers={},
    extensions_header="",
    operations={
        Execute: Operation(method="execute_task", encode=encode_execute, decode=decode_outcome),
        GetTask: Operation(method="get_task", encode=encode_get, decode=decode_outcome),
        GetExtendedCard: Operation(method="get_agent_card", encode=encode_nothing, decode=decode_card),
    },
    update=decode_update,
    numbers=Numbers(codes=codes_of(OURS.column)),
    polls=True,
)
