"""The operation that executes the task of a message of a chat: a send, without the attachments that are too large."""

from django.conf import settings
from msgspec.structs import replace

from a2a.dialects.zone import MARK
from a2a.requests import Execute
from a2a.types import Json, Part
from tasks_app.operations.operation import Context, Grant
from tasks_app.operations.send import send


async def execute(request: Execute, context: Context) -> Grant:
    """Send the message to its agent. An attachment beyond A2A_ATTACHMENT_BYTES is skipped, and the task says why."""
    return await send(without_large(request, settings.A2A_ATTACHMENT_BYTES), context)


def without_large(request: Execute, most: int) -> Execute:
    """Return the request without the attachments that have more bytes than `most`, and with a note of them in the
    metadata of its task."""
    skipped = [_skip(part, size, most) for part in request.message.parts if (size := _size(part)) > most]
    if not skipped:
        return request
    rest = tuple(part for part in request.message.parts if _size(part) <= most)
    metadata = request.metadata or {}
    facts = metadata.get(MARK, {}) | {"skipped_attachments": skipped}
    return replace(request, message=replace(request.message, parts=rest), metadata=metadata | {MARK: facts})


def _size(part: Part) -> int:
    """Return the bytes of an attachment, as far as they are known."""
    if part.raw is not None:
        return len(part.raw)
    size = (part.metadata or {}).get("size")
    return size if isinstance(size, int) else 0


def _skip(part: Part, size: int, most: int) -> Json:
    return {"name": part.filename or "", "reason": f"the attachment has {size} bytes, and may have {most}"}
