"""The answer of one agent to one message of a shared stream: the call of the agent, and the chunks of its task.

The agent is called in the name of the message's author. Its task is followed as any reader follows it, and what it
yields is written into the stream. A task without news for a while is not followed any longer: the answer waits.
"""

import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import orjson
from django.conf import settings
from django.utils.crypto import salted_hmac

from a2a.answers import Answer
from a2a.dialects.json.json_1_0 import decode_message
from a2a.documents import EventDocument
from a2a.errors import Error, Internal, InvalidParams, RateLimited, SharedStreamClosed, Unavailable
from a2a.requests import SendMessage
from a2a.shared_streams import ChunkRole, SharedStreamState
from a2a.states import TaskState
from a2a.types import Message, Part, Role
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import MAY_PASS, RETRY_SECONDS
from tasks_app.database.work import Do
from tasks_app.event_log import ReadHead
from tasks_app.event_log.readers import Reader, readers
from tasks_app.limits.rate_limits import cost_of_send, limits
from tasks_app.models import DirectReply
from tasks_app.operations.dispatcher import perform
from tasks_app.operations.operation import Context
from tasks_app.operations.pauses import shorten
from tasks_app.operations.repeat import find_sent
from tasks_app.shared_streams.answers import Turn, attach, earlier_answer, put_off, transfer
from tasks_app.shared_streams.log import Entry, append, publish
from tasks_app.shared_streams.translation import encode_parts, state_entry, text_part, translate
from tasks_app.shared_streams.waiting import wait, wake_by_id

log = logging.getLogger(__name__)
R = TypeVar("R")


async def answer(turn: Turn) -> str | None:
    """Have the agent answer one message. Return the id of its task if the answer waits for news of it."""
    if turn.task_id is None:
        return await _call(turn)
    return await _follow(turn, turn.task_id, turn.cursor)


async def ask(function: Callable[[], R]) -> R:
    """Return the result of a function on the write lane."""
    return await bridge.ask(Do(function), settings.A2A_LEASE_SECONDS)


async def _call(turn: Turn) -> str | None:
    """Call the agent, or find the call of a process that died, and follow its task."""
    message_id = _message_id(turn)
    earlier = await ask(partial(earlier_answer, turn))
    target = await find_sent(turn.caller.owner_id, message_id)
    if target is not None and target.reply_id is not None:
        await _end(turn, (await ask(partial(_read_reply, target.reply_id))).parts)
        return None
    task_id = target.task_id if target else None
    if task_id is None:
        try:
            answer = await _send(turn, message_id, earlier)
        except (RateLimited, Unavailable) as error:
            await ask(partial(put_off, turn.id, shorten(error.retry_after)))
            return None
        except Error as error:
            await _end(turn, (text_part(error.message),))
            return None
        except MAY_PASS as error:
            log.warning("%s/%s: %s waits for the database: %s", turn.stream_id, turn.seq, turn.agent, error)
            await ask(partial(put_off, turn.id, RETRY_SECONDS))
            return None
        except Exception as error:  # noqa: BLE001  # a fault of the call ends this answer; logged with its reference
            await _end(turn, (text_part(_explain(turn, error)),))
            return None
        if answer.message is not None:
            await _end(turn, answer.message.parts)
            return None
        task_id = answer.task.id if answer.task else ""
    cursor = earlier[1] if earlier and earlier[0] == task_id else 0
    await ask(partial(attach, turn, task_id, cursor))
    return await _follow(turn, task_id, cursor)


def _message_id(turn: Turn) -> str:
    """Return the id of the message to the agent, the same in each process.

    No caller can compute it, for otherwise its author could use it first, for words of their own in the agent's name.
    """
    place = f"{turn.stream_id}/{turn.seq}/{turn.agent}"
    return f"{place}/{salted_hmac('tasks_app.operations.moderator', place, algorithm='sha256').hexdigest()[:32]}"


def _explain(turn: Turn, error: Exception) -> str:
    reference = secrets.token_hex(6)
    log.error("%s/%s: calling %s failed, reference %s", turn.stream_id, turn.seq, turn.agent, reference, exc_info=error)
    return f"{Internal.sentence}, reference {reference}"


async def _send(turn: Turn, message_id: str, earlier: tuple[str, int] | None) -> Answer:
    """Send the message to the agent: as the answer to its question if it has one, else as a new task."""
    continued = None
    if earlier is not None:
        head = await bridge.ask(ReadHead(task_id=earlier[0], sight=None))
        continued = head.task_id if head and head.state == TaskState.INPUT_REQUIRED else None
    message = Message(
        message_id=message_id, role=Role.USER, parts=turn.parts, context_id=turn.stream_id, task_id=continued
    )
    context = Context(caller=turn.caller, agent=turn.agent)
    async with limits.paid(turn.caller, cost_of_send()):
        result = await perform(SendMessage(message=message, return_immediately=True), context)
    if not isinstance(result, Answer):
        raise TypeError(f"a send that returns at once gave {type(result).__name__}")
    return result


def _read_reply(reply_id: str) -> Message:
    return decode_message(orjson.loads(DirectReply.objects.values_list("reply", flat=True).get(pk=reply_id)))


async def _end(turn: Turn, parts: Sequence[Part]) -> None:
    """Write an answer that has no task as one last chunk."""
    last = Entry(author=turn.agent, role=ChunkRole.AGENT, parts=encode_parts(parts), at=clock.now(), is_last=True)
    await _transfer(turn, [last], before=turn.cursor, cursor=turn.cursor, is_over=True)


async def _follow(turn: Turn, task_id: str, cursor: int) -> str | None:
    """Write the events of a task into the stream until the answer is over, or waits. Return the task if it waits."""
    async with readers.reader(task_id, turn.stream_id, cursor) as reader:
        while not readers.draining:
            events = await reader.page()
            if events:
                if await _write(turn, reader, events, cursor):
                    return None
                cursor = reader.cursor
            elif not await reader.news(settings.A2A_POLL_SECONDS) and not readers.draining:
                return await _rest(turn, reader)
    return None


async def _rest(turn: Turn, reader: Reader) -> str | None:
    """Let the answer wait for news of its task, and return the task. News that came meanwhile make it due again."""
    if not await ask(partial(wait, turn.id, reader.cursor)):
        return None
    if reader.newest > reader.cursor:
        await ask(partial(wake_by_id, [turn.id]))
        return None
    return reader.id


async def _write(turn: Turn, reader: Reader, events: Sequence[EventDocument], before: int) -> bool:
    """Write a page of events into the stream; return whether the answer is over."""
    entries, cursor, is_over = translate(turn.agent, events, clock.now())
    reader.cursor = cursor
    return not await _transfer(turn, entries, before=before, cursor=cursor, is_over=is_over) or is_over


async def _transfer(turn: Turn, entries: Sequence[Entry], *, before: int, cursor: int, is_over: bool) -> bool:
    """Append the chunks. Return False if the answer waits, is over, or has become another process's.

    A stream that is full is closed, because the rest of the answer would be missing.
    """
    try:
        place = await ask(partial(transfer, turn, entries, before=before, cursor=cursor, is_over=is_over))
    except InvalidParams as error:
        await _close_full(turn, error)
        return False
    if place and not place.is_repeat:
        publish([place])
    return place is not None


async def _close_full(turn: Turn, error: InvalidParams) -> None:
    reason = f"The shared stream {error.violations[0][1]}."
    end = state_entry("moderator", SharedStreamState.CLOSED, reason)
    with suppress(SharedStreamClosed):
        publish([await ask(partial(append, turn.stream_id, [end]))])
