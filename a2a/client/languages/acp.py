"""ACP on the client's side: tasks over JSON-RPC. Its streams are in acp_streams.py, the server in a2a/dialects/acp/."""

from a2a.client.language import ClientLanguage, Operation
from a2a.client.languages import acp_streams
from a2a.client.refusals import Numbers, codes_of
from a2a.client.updates import Update
from a2a.dialects.acp.faults import COLUMN
from a2a.dialects.acp.values import NOTES, decode_part, encode_message, split_marked
from a2a.dialects.acp.values import STATES as NAMES
from a2a.errors import InvalidParams
from a2a.params import read_time
from a2a.requests import CancelTask, GetTask, SendMessage
from a2a.states import TaskState
from a2a.types import Artifact, Json, Message, Role, Status, Task

STATES: dict[str, TaskState] = {name: state for state, name in reversed(NAMES.items()) if state not in NOTES}
"""The states by their names. Two states that ACP lacks are in the metadata."""

# ---------------------------------------------------------------- requests


def encode_create(request: SendMessage) -> Json:
    """Return the params of tasks.create. Raises InvalidParams for what ACP has no place for."""
    if request.message.context_id is not None:
        raise InvalidParams(("message.contextId", "has no place in ACP"))
    if request.push_config is not None or request.accepted_output_modes:
        raise InvalidParams(("configuration", "has no place in ACP, but for returnImmediately and historyLength"))
    params: Json = {"initialMessage": encode_message(request.message, "")}
    params |= {"assignTo": request.agent} if request.agent is not None else {}
    return params | ({"metadata": request.metadata} if request.metadata else {})


def encode_send(request: SendMessage) -> Json:
    return {"taskId": request.message.task_id, "message": encode_message(request.message, "")}


def encode_get(request: GetTask) -> Json:
    params: Json = {"taskId": request.id}
    if request.history_length == 0:
        params["includeMessages"] = False
    return params if request.include_artifacts else params | {"includeArtifacts": False}


def encode_cancel(request: CancelTask) -> Json:
    reason = (request.metadata or {}).get("reason")
    return {"taskId": request.id} | ({"reason": reason} if isinstance(reason, str) else {})


# ----------------------------------------------------------------- answers


def decode_message(wire: Json) -> Message:
    return Message(
        message_id="",
        role=Role.AGENT if wire["role"] == "agent" else Role.USER,
        parts=tuple(decode_part(part, f"parts[{place}]") for place, part in enumerate(wire["parts"])),
        metadata=wire.get("metadata"),
    )


def decode_artifact(wire: Json) -> Artifact:
    return Artifact(
        artifact_id=wire["artifactId"],
        parts=tuple(decode_part(part, f"parts[{place}]") for place, part in enumerate(wire.get("parts") or ())),
        name=wire.get("name"),
        description=wire.get("description"),
        metadata=wire.get("metadata"),
    )


def decode_result(wire: Json) -> Task:
    """Return the task of a result. The newest message, if it is the agent's, is that of the status."""
    task = wire["task"]
    messages = [decode_message(message) for message in task.get("messages") or ()]
    newest = messages.pop() if messages and messages[-1].role is Role.AGENT else None
    time = read_time(task.get("updatedAt") or task["createdAt"], "updatedAt")
    if time is None:
        raise InvalidParams(("createdAt", "is required"))
    return Task(
        id=task["taskId"],
        context_id="",
        status=Status(state=_state_of(task), timestamp=time, message=newest),
        artifacts=tuple(decode_artifact(artifact) for artifact in task.get("artifacts") or ()),
        history=tuple(messages),
        metadata=split_marked(task.get("metadata"))[1] or None,
    )


def _state_of(task: Json) -> TaskState:
    """Return the state of a task. Our servers note states that ACP lacks in the metadata."""
    metadata = task.get("metadata") or {}
    for state, note in NOTES.items():
        if NAMES[state] == task["status"] and note.items() <= metadata.items():
            return state
    return STATES[task["status"]]


def decode_update(wire: Json) -> Update:
    """Raise InvalidParams: no call of ACP is answered with a stream."""
    raise InvalidParams(("result", "is no event of a stream"))


LANGUAGE = ClientLanguage(
    name="acp",
    version="1.0",
    headers={},
    extensions_header="",
    operations={
        SendMessage: Operation(method="tasks.create", encode=encode_create, decode=decode_result),
        GetTask: Operation(method="tasks.get", encode=encode_get, decode=decode_result),
        CancelTask: Operation(method="tasks.cancel", encode=encode_cancel, decode=decode_result),
        **acp_streams.OPERATIONS,
    },
    follow_up=Operation(method="tasks.send", encode=encode_send, decode=decode_result),
    update=decode_update,
    numbers=Numbers(codes=codes_of(COLUMN)),
    polls=True,
    has_message_ids=False,
    seconds={GetTask: 5.0, SendMessage: 30.0},
)
