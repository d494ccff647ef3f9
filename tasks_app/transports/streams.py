"""A stream is a reader of the log: the task as of the cursor, then its events, each a number and bytes for a door."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from enum import Enum
from functools import partial

from django.conf import settings

from a2a.answers import Frame
from a2a.documents import TaskDocument
from a2a.envelopes import Wrapping
from a2a.files import MARK
from a2a.language import Language
from a2a.states import TERMINAL, TaskState
from a2a.types import Message
from tasks_app.callers.accounts import Holding
from tasks_app.event_log.readers import Reader, readers
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.files import with_links
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import Follow
from tasks_app.transports.call import fault
from tasks_app.transports.keys import KEY_SECONDS, is_valid


def size_of_task(task: TaskDocument) -> int:
    """Return about how many bytes a task has."""
    return len(task.artifacts or "") + len(task.history or "") + len(task.long_history or b"")


class End(Enum):
    """Why a stream has ended."""

    DONE = "nothing more comes"
    REVOKED = "the key is not valid any more"
    TOO_LONG = "it was open for as long as a stream may be"
    DRAINING = "the server goes down"
    FAULT = "a fault of ours"


Page = list[tuple[int | None, bytes]]
"""Events that are there at once, each with its sequence number. An empty page means that it is quiet."""


class Stream:
    """One answer that is a stream. It owns no work: when it drops, the task goes on."""

    def __init__(
        self,
        follow: Follow,
        language: Language,
        wrapping: Wrapping,
        exchange: OpenExchange,
        key: tuple[str, ...],
        base: str,
        held: Holding | None = None,
        weighed: Holding | None = None,
    ) -> None:
        self.first: Frame | None = follow.first
        """The start of the stream: dropped once it was sent, for a task may be large and a stream is open for long."""
        self.history_length, self.stays = follow.history_length, follow.stays
        self.language = language
        self.wrapping = wrapping
        self.exchange = exchange
        self.key = key
        """The digests of the caller's key: a stream ends when it is revoked (docs/protocol.md#streams)."""
        self.base = base
        """The base URL of links to files."""
        self.held = held
        """Its place in the account."""
        self.weighed = weighed
        """The bytes of a large beginning, in the account until it was sent."""
        self.end = End.DONE
        """Why it has ended, once it has."""
        self.failure = b""
        """The error of a stream that ended by a fault, in its envelope."""

    async def pages(self) -> AsyncGenerator[Page, None]:
        """Yield the events. A page is sent before the next is asked for."""
        row = self.exchange.row
        try:
            first, self.first = self.first, None
            if isinstance(first, Message):
                # A reply is recorded with it, and to look for secrets in a long text takes its time.
                short = all(part.text is not None and len(part.text) <= LARGE for part in first.parts)
                yield self._encoded(first, None) if short else await off_loop(self._encoded, first, None)
                return
            if not isinstance(first, TaskDocument):
                raise TypeError("a stream begins with a message or a task")
            row.first_seq = row.last_seq = first.seq
            state, size = first.state, size_of_task(first)
            self.exchange.about(first.id, first.context_id)
            async with readers.reader(first.id, first.context_id, first.seq) as reader:
                encode = partial(self._encoded, first, first.seq)
                del first
                yield await off_loop(encode) if size > LARGE else encode()
                del encode
                self._release(self.weighed)
                if not self._ends(state):
                    async for page in self._tail(reader):
                        yield page
        except Exception as error:  # noqa: BLE001  # logged with its reference
            # A database that is away may be back soon: the client may come again with the last event it has seen.
            failure = self.wrapping.failure(fault(self.exchange, error), self.language)
            row.code, self.end, self.failure = failure.code, End.FAULT, failure.payload
        finally:
            self.exchange.end("stream", code=row.code)
            recorder.close(self.exchange)
            self._release(self.held)
            self._release(self.weighed)

    def sent(self, size: int) -> None:
        """Count bytes that the door has sent for events."""
        self.exchange.row.response_bytes += size

    @staticmethod
    def _release(holding: Holding | None) -> None:
        if holding:
            holding.release()

    async def _tail(self, reader: Reader) -> AsyncIterator[Page]:
        """Yield the events after the cursor, as they come."""
        clock = asyncio.get_running_loop().time
        oldest, due = clock() + settings.A2A_STREAM_SECONDS, clock() + KEY_SECONDS
        while True:
            if clock() > due:
                due = clock() + KEY_SECONDS
                if not await is_valid(self.key):
                    self.end = End.REVOKED
                    return
            events = await reader.page()
            if events:
                last = next((place for place, event in enumerate(events) if self._ends(event.state)), None)
                shown = events if last is None else events[: last + 1]
                if page := [item for event in shown for item in self._encoded(event, event.seq)]:
                    yield page
                self.exchange.row.last_seq = shown[-1].seq
                if last is not None:
                    return
                continue
            if readers.draining:
                self.end = End.DRAINING
                return
            if clock() > oldest:
                self.end = End.TOO_LONG
                return
            if not await reader.news(settings.A2A_PING_SECONDS) and not readers.draining:
                yield []

    def _encoded(self, frame: Frame, seq: int | None) -> Page:
        """Return one event; nothing for an event that the language hides."""
        wire = self.language.encode_frame(frame, self.history_length)
        if wire is None:
            return []
        whole = self.wrapping.head + wire + self.wrapping.tail
        self.exchange.row.frames += 1
        if isinstance(frame, Message):
            self.exchange.keep(whole)
        return [(seq, with_links(whole, self.base) if MARK in whole else whole)]

    def _ends(self, state: str | None) -> bool:
        """Return whether a stream ends with the state. Terminal states end every stream; a question ends that of a
        send, while missing credentials come out of band and leave it open (docs/protocol.md#streams)."""
        if state is None:
            return False
        return state in TERMINAL or (state == TaskState.INPUT_REQUIRED and not self.stays)
