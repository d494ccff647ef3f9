"""Idempotency: a message that is sent twice counts once. Its key, its fingerprint, and the answer to the second."""

import hashlib

import orjson
from django.conf import settings

from a2a.answers import Answer
from a2a.dialects.json.json_1_0 import decode_message, encode_message
from a2a.documents import TaskDocument
from a2a.errors import IdempotencyConflict, TaskNotFound
from a2a.requests import SendMessage, StreamMessage
from a2a.states import QUIET, TaskState
from a2a.types import Message
from tasks_app.callers.access import sight
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import FindKey, KeyTarget, ReadOrMeasure, ReadTask, TaskRead, seq_of_message
from tasks_app.ids import uuid7
from tasks_app.models import DirectReply
from tasks_app.operations.attachments import with_digests
from tasks_app.operations.operation import Context, Done, Follow, Grant, Wait
from tasks_app.operations.tasks import document_as_of

MAX_ID = 255
"""Characters of a context id or message id that are stored as they are."""


def key_of(message_id: str) -> str:
    """Return the key of a message id. If the settings keep no keys, return a key that no later message has."""
    if not settings.A2A_KEY_HOURS:
        return uuid7()
    return message_id if len(message_id) <= MAX_ID else "sha256:" + hashlib.sha256(message_id.encode()).hexdigest()


async def find_sent(owner_id: int, message_id: str, patience: float | None = None) -> KeyTarget | None:
    """Return the outcome of a message that this process, or one that died, may have sent in the name of an owner; None
    if the message was never sent. The patience is that of `bridge.ask`, in seconds."""
    return await bridge.ask(FindKey(owner_id=owner_id, key=key_of(message_id)), patience)


def fingerprint(message: Message, agent: str | None) -> str:
    """Return a digest of a message and its agent. Equal messages have equal digests, whatever their language."""
    if any(part.raw is not None for part in message.parts):
        message = with_digests(message)
    wire = orjson.dumps([agent, encode_message(message)], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(wire).hexdigest()


async def repeat(request: SendMessage, context: Context, target: KeyTarget, digest: str) -> Grant:
    """Answer a message whose id was used before: an equal message gets the same outcome, any other is a conflict.

    Raises IdempotencyConflict, and TaskNotFound if the task was deleted before the key.
    """
    if target.fingerprint != digest:
        raise IdempotencyConflict(messageId=request.message.message_id[:MAX_ID])
    if target.reply_id is not None:
        return await _repeat_reply(request, context, target.reply_id)
    task_id = target.task_id or ""
    context.exchange.about(task_id)
    look = ReadTask(task_id=task_id, sight=sight(context.caller, task_id), history=request.history_length != 0)
    read = await ReadOrMeasure(look)
    context.reserve(read if isinstance(read, int) else read.size if read else 0)
    if isinstance(read, int):
        read = await look
    if read is None:
        raise TaskNotFound(taskId=task_id)
    context.exchange.about(task_id, read.document.context_id, read.document.seq)
    if not isinstance(request, StreamMessage):
        return answer_or_wait(request, read)
    # The stream begins where the message was stored, as it did the first time, and so not before an earlier question.
    message_id = request.message.message_id
    message_seq = await DoSlowly(lambda: seq_of_message(task_id, message_id), context.caller.owner_id)
    seq = min(max(request.after or 1, message_seq), read.document.seq)
    first = await document_as_of(context.caller, task_id, read.document.context_id, seq)
    return Follow(first=first or read.document, history_length=request.history_length)


async def _repeat_reply(request: SendMessage, context: Context, reply_id: str) -> Done | Follow:
    """Answer with the direct reply that the message got. Raises TaskNotFound if it was deleted before its key."""
    row = await DoSlowly(lambda: DirectReply.objects.filter(pk=reply_id).first(), context.caller.owner_id)
    if row is None:
        raise TaskNotFound
    context.exchange.about_reply(row.context_id)
    reply = decode_message(orjson.loads(row.reply))
    return Follow(first=reply) if isinstance(request, StreamMessage) else Done(Answer(message=reply))


def answer_or_wait(request: SendMessage, read: TaskRead) -> Done | Wait:
    """Return the task as it is, or the wait until no agent works on it."""
    document = read.document
    if request.return_immediately or TaskState(document.state) in QUIET:
        return Done(Answer(task=document, history_length=request.history_length))
    return wait_for(request, document)


def wait_for(request: SendMessage, document: TaskDocument) -> Wait:
    """Return the wait of a call until no agent works on the task."""
    return Wait(
        task_id=document.id,
        context_id=document.context_id,
        after=document.seq,
        history_length=request.history_length,
        seconds=request.wait_seconds,
    )
