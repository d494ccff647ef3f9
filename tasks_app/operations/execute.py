"""The operation that executes the task of a message of a chat: a send, without the attachments that are too large."""

from collections.abc import Sequence

from django.conf import settings
from msgspec.structs import replace

from a2a.answers import Answer
from a2a.dialects.zone import MARK
from a2a.documents import TaskDocument
from a2a.errors import Error
from a2a.requests import Execute
from a2a.types import Json, Part
from tasks_app import clock
from tasks_app.database.rows import UsageRow
from tasks_app.ids import uuid7
from tasks_app.masking import mask_id, mask_text
from tasks_app.operations.operation import Context, Done, Grant, Wait
from tasks_app.operations.send import send
from tasks_app.usage import of_task, record

SKIPPED = 1_000
"""Characters about skipped attachments in a row of the usage history. The quota of the caller does not count them."""
NAME = 100
"""Characters of the name of a skipped attachment there."""


async def execute(request: Execute, context: Context) -> Grant:
    """Send the message to its agent, and note it in the usage history.

    An attachment beyond A2A_ATTACHMENT_BYTES is skipped, and the task says why. Secrets are stored apart, sealed.
    """
    request = without_large(with_id(request), settings.A2A_ATTACHMENT_BYTES)
    context.secrets = request.secrets
    usage = context.usage = _usage(request, context)
    try:
        grant = await send(request, context)
        usage = of_task(usage, _task_id(grant) or "")
    except Error as error:
        usage.outcome = error.reason
        raise
    finally:
        if context.usage is not None:
            record(usage)
    return grant


def with_id(request: Execute) -> Execute:
    """Return the request with an id of its message, by which its agent finds the secrets."""
    if request.message.message_id:
        return request
    return replace(request, message=replace(request.message, message_id=uuid7()))


def _task_id(grant: Grant) -> str | None:
    match grant:
        case Wait(task_id=id):
            return id
        case Done(result=Answer(task=TaskDocument(id=id))):
            return id
        case _:
            return None


def _usage(request: Execute, context: Context) -> UsageRow:
    """Return the row of the call. An id that PostgreSQL cannot store, or that may be a secret, is masked."""
    facts = (request.metadata or {}).get(MARK, {})
    skipped = facts.get("skipped_attachments", ())
    return UsageRow(
        id=uuid7(),
        created_at=clock.now(),
        tenant_id=context.caller.tenant_id,
        owner_id=context.caller.owner_id,
        correlation_id=mask_id(facts.get("correlation_id", ""), 255),
        channel=mask_id(facts.get("channel", ""), 255),
        skipped=_list_skipped(skipped),
    )


def _list_skipped(skipped: Sequence[Json]) -> str:
    """Return the names and the reasons of skipped attachments, as far as there is room."""
    lines, room = list[str](), SKIPPED
    for place, item in enumerate(skipped):
        # A name is as long as its caller likes, and is cut before it is searched for secrets.
        line = mask_text(f"{item['name'][:NAME]}: {item['reason']}")
        room -= len(line)
        if room < 0:
            return "; ".join([*lines, f"and {len(skipped) - place} more"])
        lines.append(line)
    return "; ".join(lines)


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
