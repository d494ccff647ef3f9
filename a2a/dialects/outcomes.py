"""The outcome of a task, for languages in which a call is the work itself: its output, and the error of a task that has
not completed."""

import orjson

from a2a import errors
from a2a.dialects.json.json_1_0 import decode_message, encode_part
from a2a.errors import Error, InvalidParams
from a2a.states import TaskState
from a2a.types import Json, Part

FAILURES: dict[str, type[Error]] = {
    kind.reason: kind
    for kind in (
        errors.Timeout,
        errors.BudgetExceeded,
        errors.UnknownAgent,
        errors.MissingScope,
        errors.PermissionDenied,
        errors.RateLimited,
        errors.Unavailable,
        errors.ContentTypeNotSupported,
    )
}
"""The errors of failures whose status names their reason."""


def output_of(parts: list[Part]) -> Json:
    """Return the texts of an output as one, with its data and its files if there are any."""
    texts = [part.text for part in parts if part.text is not None]
    files = [encode_part(part) for part in parts if part.raw is not None or part.url is not None]
    data = [part.data for part in parts if part.text is None and part.raw is None and part.url is None]
    return {"text": "".join(texts)} | ({"data": data} if data else {}) | ({"files": files} if files else {})


def error_of(task_id: str, state: str, status: str | Json) -> Error | None:
    """Return the error of a task in this state, with the sentence of its status; None unless it has failed, or was
    rejected or canceled."""
    if state not in (TaskState.FAILED, TaskState.REJECTED, TaskState.CANCELED):
        return None
    wire = orjson.loads(status) if isinstance(status, str) else status
    message = decode_message(wire["message"]) if "message" in wire else None
    text = (message and message.text) or f"the task is {state}"
    if state == TaskState.REJECTED:
        return InvalidParams(("params", text), taskId=task_id)
    if state == TaskState.CANCELED:
        return errors.TaskEnded(taskId=task_id, detail=text)
    kind = FAILURES.get(((message and message.metadata) or {}).get("reason", ""), errors.InvalidAgentResponse)
    return kind(taskId=task_id, detail=text)
