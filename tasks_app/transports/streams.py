"""Streams read the log: first the task as of the cursor, then its events. A door sends each in a frame of its own."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from enum import Enum
from functools import partial
from typing import assert_never

from django.conf import settings

from a2a.answers import Frame
from a2a.documents import EventDocument, TaskDocument
from a2a.envelopes import Wrapping
from a2a.errors import Error, InvalidKey, MissingScope, Timeout, Unauthenticated, Unavailable
from a2a.files import MARK
from a2a.language import Language
from a2a.notices import EVERYTHING, with_notice
from a2a.shared_streams import SharedStreamDocument
from a2a.states import TERMINAL, TaskState
from a2a.types import Message
from tasks_app import clock
from tasks_app.event_log.readers import LogReader, LogRow, readers
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.files import with_links
from tasks_app.limits.accounts import Holding
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import Follow
from tasks_app.transports.faults import fault
from tasks_app.transports.keys import KEY_SECONDS, CheckAgain
from tasks_app.transports.page_room import PageRoom


class End(Enum):
    """The reason why a stream ended."""

    DONE = "the task sends no more events"
    REVOKED = "the key is not valid any more, or has lost the scope of the call"
    EXPIRED = "the link has expired"
    TOO_LONG = "the stream was open for as long as a stream may be"
    DRAINING = "the server goes down"
    FAULT = "a fault of the server"


RESUME = "the task goes on, and the same call with Last-Event-ID resumes the stream"
"""The way back for a client, in an error that ends its stream alone."""
Page = list[tuple[int | None, bytes]]
"""Events that are there at once: the sequence number and the bytes of each. An empty page marks a silence. A door
empties a page once it has made frames of it: it may be large, and the wait for the client or for the next long."""


class Stream:
    """The answer to one call, as a stream. The task goes on when the stream drops."""

    def __init__(
        self,
        follow: Follow,
        language: Language,
        wrapping: Wrapping,
        exchange: OpenExchange,
        room: PageRoom,
        check_again: CheckAgain,
        base: str,
        holding: Holding | None = None,
        weight: Holding | None = None,
        until: float | None = None,
        expires_at: float | None = None,
    ) -> None:
        self.first: Frame | SharedStreamDocument | None = follow.first
        """The first frame. It is dropped once it is sent, because a task may be large and a stream open for long."""
        self.notices = follow.notices
        self.history_length, self.stays, self.after = follow.history_length, follow.stays, follow.after
        self.language = language
        self.wrapping = wrapping
        self.exchange = exchange
        self.room = room
        self.check_again = check_again
        """Checks the caller again. A stream ends when its credential or its scope does (docs/protocol.md#streams)."""
        self.until = until
        """The time at which the permission to read ends, in seconds since 1970; None if it does not end by itself."""
        self.expires_at = expires_at
        """The time at which the credential of the caller ends, in seconds since 1970; None if it does not."""
        self.base = base
        """The base URL of links to files."""
        self.holding = holding
        """The stream in the account of its caller."""
        self.weight = weight
        """The bytes of the first frame in the account until it is sent, if they count."""
        self.end = End.DONE
        """The reason of the end, after the end."""
        self.lapse: Error | None = None
        """The error of the last check of the caller, if it ended the stream."""
        self.failure = b""
        """The error in its envelope, after an end by a fault, and after an outcome that is an error in the language."""

    @property
    def numbers_frames(self) -> bool:
        """Whether a socket adds the sequence number to each frame, because the events do not contain it."""
        return self.language.encode_notification is None

    async def pages(self) -> AsyncGenerator[Page, None]:
        """Yield the events. A door asks for a page when it has sent the page before."""
        row = self.exchange.row
        try:
            async with aclosing(self._begin()) as pages:
                async for page in pages:
                    yield page
        except Exception as error:  # noqa: BLE001  # logged with its reference
            # A database that is away may be back soon. The client may come back with the last event that it has seen.
            failure = self.wrapping.failure(fault(self.exchange, error), self.language)
            row.code, self.end, self.failure = failure.code, End.FAULT, failure.payload
        finally:
            self.exchange.end("stream", code=row.code)
            recorder.close(self.exchange)
            self._release(self.holding)
            self._release(self.weight)
            self.room.release()

    async def _begin(self) -> AsyncGenerator[Page, None]:
        """Yield the first frame, and then what follows it."""
        row, first, self.first = self.exchange.row, self.first, None
        if isinstance(first, Message):
            # The reply is recorded as well. The search for secrets in a long text takes its time.
            short = all(part.text is not None and len(part.text) <= LARGE for part in first.parts)
            yield self._encode(first, None) if short else await off_loop(self._encode, first, None)
            return
        if not isinstance(first, TaskDocument):
            raise TypeError("a stream begins with a message or a task")
        row.first_seq = row.last_seq = first.seq
        task_id, state, size = first.id, first.state, first.size
        refusal = self._refusal(first) if self._ends(state) else None
        self.exchange.about(first.id, first.context_id)
        async with readers.reader(first.id, first.context_id, first.seq) as reader:
            encode = partial(self._encode, first, first.seq)
            del first
            page = await off_loop(encode) if size > LARGE else encode()
            del encode
            if self.weight is not None:
                self.weight.measure(_size_of(page))
            yield page
            del page
            self._release(self.weight)
            self._refuse(refusal)
            if not self._ends(state):
                async for page in self._tail(reader):
                    yield page
                self._refuse(self._interruption(task_id))

    def _refusal(self, end: TaskDocument | LogRow) -> Error | None:
        """Return the error that the language sends for this end of a task; None if it sends the end as an event."""
        if self.language.refusal is None or not isinstance(end, TaskDocument | EventDocument):
            return None
        return self.language.refusal(end)

    def _refuse(self, error: Error | None) -> None:
        """End the stream with an error, if there is one."""
        if error is not None:
            failure = self.wrapping.failure(error, self.language)
            self.exchange.row.code, self.failure = failure.code, failure.payload

    def _interruption(self, task_id: str) -> Error | None:
        """Return the error for a stream that ends before its task, in a language in which outcomes are errors.

        Its events show no state, so its clients take a stream without an error for a complete one.
        """
        if self.language.refusal is None:
            return None
        match self.end:
            case End.REVOKED | End.EXPIRED:
                return self.lapse or InvalidKey()
            case End.TOO_LONG:
                return Timeout(taskId=task_id, detail=f"the stream was open for as long as one may be; {RESUME}")
            case End.DRAINING:
                return Unavailable(taskId=task_id, detail=f"the server is going down; {RESUME}")
            case End.DONE | End.FAULT:
                return None
            case _:
                assert_never(self.end)

    def count_bytes(self, size: int) -> None:
        """Count bytes that the door sends for events."""
        self.exchange.row.response_bytes += size

    @staticmethod
    def _release(holding: Holding | None) -> None:
        if holding:
            holding.release()

    async def _tail(self, reader: LogReader) -> AsyncIterator[Page]:
        """Yield the events after the cursor when they are written."""
        time = asyncio.get_running_loop().time
        oldest, due = time() + settings.A2A_STREAM_SECONDS, time() + KEY_SECONDS
        while True:
            if time() > due:
                due = time() + KEY_SECONDS
                try:
                    await self.check_again()
                except (Unauthenticated, MissingScope) as error:
                    self.end, self.lapse = End.REVOKED, error
                    return
            if (rest := self._rest()) <= 0:
                return
            pause = min(settings.A2A_PING_SECONDS, rest)
            events = await self.room.page(reader, pause)
            if events:
                last = next((place for place, event in enumerate(events) if self._ends(event.state)), None)
                events = events if last is None else events[: last + 1]
                seq, refusal = events[-1].seq, None if last is None else self._refusal(events[-1])
                page = [item for event in events for item in self._encode_row(event)]
                del events  # They may be large, and the client slow.
                if page:
                    self.room.measure(_size_of(page))
                    yield page
                self.room.release()
                self.exchange.row.last_seq = seq
                if last is not None:
                    self._refuse(refusal)
                    return
                continue
            if end := self._end_of(time() > oldest):
                self.end = end
                return
            if events is None or not (await reader.news(pause) or readers.draining):
                yield []

    def _rest(self) -> float:
        """Return the seconds until the permission to read ends, and note how the stream ends if it has."""
        if self.until is None and self.expires_at is None:
            return float("inf")
        now = clock.now().timestamp()
        rests = {
            end: time - now
            for end, time in ((End.EXPIRED, self.until), (End.REVOKED, self.expires_at))
            if time is not None
        }
        first = min(rests, key=lambda end: rests[end])
        if rests[first] <= 0:
            self.end = first
        return rests[first]

    @staticmethod
    def _end_of(is_old: bool) -> End | None:
        """Return the reason to end a stream in a silence, if there is one."""
        if readers.draining:
            return End.DRAINING
        return End.TOO_LONG if is_old else None

    def _encode_row(self, row: LogRow) -> Page:
        """Return a page with one row of the log; an empty list for one that the language hides."""
        if not isinstance(row, EventDocument):
            raise TypeError("the log of a task has events")
        if self.language.encode_notification is None:
            return self._encode(row, row.seq)
        event = with_notice(row, EVERYTHING if self.notices is None else self.notices)
        return [] if event is None else self._page(self.language.encode_notification(event), row.seq)

    def _encode(self, frame: Frame, seq: int | None) -> Page:
        """Return a page with one event; an empty list for an event that the language hides."""
        wire = self.language.encode_frame(frame, self.history_length)
        if wire is None:
            return []
        payload = self.wrapping.head + wire + self.wrapping.tail
        if isinstance(frame, Message):
            self.exchange.keep(payload)
        return self._page(payload, seq)

    def _page(self, payload: bytes, seq: int | None) -> Page:
        """Return a page with one frame, and count the frame."""
        self.exchange.row.frames += 1
        return [(seq, with_links(payload, self.base) if MARK in payload else payload)]

    def _ends(self, state: str | None) -> bool:
        """Return whether a stream ends with the state (docs/protocol.md#streams).

        Terminal states end every stream, and a question ends the stream of a send. While credentials are missing, which
        come by another way, the stream stays open.
        """
        if state is None:
            return False
        return state in TERMINAL or (state == TaskState.INPUT_REQUIRED and not self.stays)


def _size_of(page: Page) -> int:
    """Return the bytes of the events of a page."""
    return sum(len(data) for _, data in page)
