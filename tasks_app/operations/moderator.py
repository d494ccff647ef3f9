"""The moderator has agents answer the messages of shared streams, and writes what they yield into the streams.

The rows are the queue: an answer that is due may be taken by the moderator of any process. It calls the agent as the
author of the message would, and then follows the task as a reader of its log.
"""

import asyncio
import logging
import secrets
from collections import Counter
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
from tasks_app.database.work import Do
from tasks_app.event_log import FindKey, ReadHead
from tasks_app.event_log.readers import Reader, readers
from tasks_app.hints import Reached, hints
from tasks_app.models import DirectReply
from tasks_app.operations.dispatcher import perform
from tasks_app.operations.operation import Context
from tasks_app.operations.repeat import key_of
from tasks_app.shared_streams.answers import Turn, attach, earlier_answer, put_off, take_turns, transfer
from tasks_app.shared_streams.log import Entry, append, publish
from tasks_app.shared_streams.translation import encode_parts, state_entry, text_part, translate

log = logging.getLogger(__name__)
R = TypeVar("R")
AT_ONCE = 200
"""Answers that one process follows at the same time."""


class Moderator:
    """The moderator of this process, on the loop of its doors."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.wakeup = asyncio.Event()
        self.work: asyncio.Task[None] | None = None
        self.turns: dict[asyncio.Task[None], int] = {}
        """The answers that are followed, with their authors."""

    def start(self) -> None:
        """Begin on the running loop. A process without one has no doors, and needs no moderator."""
        try:
            self.loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self.wakeup = asyncio.Event()
        self.work = self.loop.create_task(self._run())
        hints.listen(self._hear)

    def stop(self) -> None:
        """End. Another process, or the next one, goes on with the answers under way."""
        hints.forget(self._hear)
        loop, self.loop = self.loop, None
        if loop is None or loop.is_closed():
            return
        for work in (self.work, *self.turns):
            if work is not None:
                loop.call_soon_threadsafe(work.cancel)

    def _hear(self, news: list[Reached]) -> None:
        """Look for answers when a message came into a shared stream. Any thread may call it."""
        has_message = any(item.message and item.state == SharedStreamState.ACTIVE for item in news)
        if has_message and self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.wakeup.set)

    async def _run(self) -> None:
        while not readers.draining:
            self.wakeup.clear()
            try:
                await self.begin_turns()
            except Exception:
                log.exception("answers in shared streams could not be read; trying again")
            with suppress(TimeoutError):
                async with asyncio.timeout(settings.A2A_SWEEP_SECONDS):
                    await self.wakeup.wait()

    async def begin_turns(self) -> None:
        """Begin with the answers that are due, as far as there is room."""
        if (room := AT_ONCE - len(self.turns)) <= 0:
            return
        for turn in await ask(partial(take_turns, room, Counter(self.turns.values()))):
            work = asyncio.ensure_future(self._answer(turn))
            self.turns[work] = turn.caller.owner_id
            work.add_done_callback(self._end_turn)

    def _end_turn(self, work: "asyncio.Task[None]") -> None:
        self.turns.pop(work, None)
        self.wakeup.set()  # The next message for the agent may be due.

    async def finish(self) -> None:
        """Answer all that is due, and wait for the end of it. For callers without a running moderator."""
        await self.begin_turns()
        while self.turns:
            await asyncio.gather(*self.turns)
            await self.begin_turns()

    async def _answer(self, turn: Turn) -> None:
        """Have the agent answer one message. Raises nothing but CancelledError."""
        try:
            if turn.task_id is None:
                await _call(turn)
            else:
                await _follow(turn, turn.task_id, turn.cursor)
        except Exception:
            log.exception("the answer of %s to %s/%s waits for another attempt", turn.agent, turn.stream_id, turn.seq)


async def ask(function: Callable[[], R]) -> R:
    """Return the result of a function on the write lane."""
    return await bridge.ask(Do(function), settings.A2A_LEASE_SECONDS)


async def _call(turn: Turn) -> None:
    """Call the agent, or find the call of a process that died, and follow its task."""
    message_id = _message_id(turn)
    earlier = await ask(partial(earlier_answer, turn))
    target = await bridge.ask(FindKey(owner_id=turn.caller.owner_id, key=key_of(message_id)))
    if target is not None and target.reply_id is not None:
        await _end(turn, (await ask(partial(_read_reply, target.reply_id))).parts)
        return
    task_id = target.task_id if target else None
    if task_id is None:
        try:
            answer = await _send(turn, message_id, earlier)
        except (RateLimited, Unavailable) as error:
            await ask(partial(put_off, turn.id, error.retry_after))
            return
        except Error as error:
            await _end(turn, (text_part(error.message),))
            return
        except Exception as error:  # noqa: BLE001  # a fault of the call ends this answer; logged with its reference
            await _end(turn, (text_part(_explain(turn, error)),))
            return
        if answer.message is not None:
            await _end(turn, answer.message.parts)
            return
        task_id = answer.task.id if answer.task else ""
    cursor = earlier[1] if earlier and earlier[0] == task_id else 0
    await ask(partial(attach, turn, task_id, cursor))
    await _follow(turn, task_id, cursor)


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


async def _follow(turn: Turn, task_id: str, cursor: int) -> None:
    """Write the events of a task into the stream until the answer is over."""
    async with readers.reader(task_id, turn.stream_id, cursor) as reader:
        while not readers.draining:
            events = await reader.page()
            if events:
                if await _write(turn, reader, events, cursor):
                    return
                cursor = reader.cursor
            elif not await reader.news(settings.A2A_LEASE_SECONDS / 3) and not await _renew(turn):
                return


async def _renew(turn: Turn) -> bool:
    return await ask(partial(put_off, turn.id, settings.A2A_LEASE_SECONDS))


async def _write(turn: Turn, reader: Reader, events: Sequence[EventDocument], before: int) -> bool:
    """Write a page of events into the stream; return whether the answer is over."""
    entries, cursor, is_over = translate(turn.agent, events, clock.now())
    reader.cursor = cursor
    return not await _transfer(turn, entries, before=before, cursor=cursor, is_over=is_over) or is_over


async def _transfer(turn: Turn, entries: Sequence[Entry], *, before: int, cursor: int, is_over: bool) -> bool:
    """Append the chunks, after the end of a pause. Return False if the answer is over, or another process's.

    A stream that is full is closed, because the rest of the answer would be missing.
    """
    while True:
        try:
            place = await ask(partial(transfer, turn, entries, before=before, cursor=cursor, is_over=is_over))
        except SharedStreamClosed:
            await asyncio.sleep(settings.A2A_POLL_SECONDS)
            if readers.draining or not await _renew(turn):
                return False
        except InvalidParams as error:
            await _close_full(turn, error)
            return False
        else:
            if place and not place.is_repeat:
                publish([place])
            return place is not None


async def _close_full(turn: Turn, error: InvalidParams) -> None:
    reason = f"The shared stream {error.violations[0][1]}."
    end = state_entry("moderator", SharedStreamState.CLOSED, reason)
    with suppress(SharedStreamClosed):
        publish([await ask(partial(append, turn.stream_id, [end]))])


moderator = Moderator()
"""The moderator of this process."""
