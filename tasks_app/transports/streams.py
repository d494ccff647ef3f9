"""A stream is a reader of the log: the task as of the cursor, then its events, over server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from django.conf import settings

from a2a import sse
from a2a.answers import Frame
from a2a.documents import TaskDocument
from a2a.files import MARK
from a2a.language import Dialect
from a2a.states import TERMINAL, TaskState
from a2a.types import Message
from tasks_app.callers.access import FindCaller
from tasks_app.callers.account import Holding
from tasks_app.database.bridge import bridge
from tasks_app.event_log.readers import Reader, readers
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.files import with_links
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import Follow
from tasks_app.transports.http import KEY_SECONDS, fault
from tasks_app.transports.wrapping import Wrapping


def size_of_task(task: TaskDocument) -> int:
    """Return about how many bytes a task has."""
    return len(task.artifacts or "") + len(task.history or "")


class Stream:
    """One answer that is a stream. It owns no work: when it drops, the task goes on."""

    def __init__(
        self,
        follow: Follow,
        dialect: Dialect,
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
        self.dialect = dialect
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

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the stream. A failure in mid-stream is one last event (docs/protocol.md#envelope)."""
        row = self.exchange.row
        try:
            first, self.first = self.first, None
            if isinstance(first, Message):
                # A reply is recorded with it, and to look for secrets in a long text takes its time.
                short = all(part.text is not None and len(part.text) <= LARGE for part in first.parts)
                yield self._framed(first, None) if short else await off_loop(self._framed, first, None)
                return
            if not isinstance(first, TaskDocument):
                raise TypeError("a stream begins with a message or a task")
            row.first_seq = row.last_seq = first.seq
            state, size = first.state, size_of_task(first)
            self.exchange.about(first.id, first.context_id)
            async with readers.reader(first.id, first.context_id, first.seq) as reader:
                frame = partial(self._framed, first, first.seq)
                del first
                yield sse.RETRY + (await off_loop(frame) if size > LARGE else frame())
                del frame
                self._release(self.weighed)
                if not self._ends(state):
                    async for chunk in self._tail(reader):
                        yield chunk
        except Exception as error:  # noqa: BLE001  # logged with its reference
            # A database that is away may be back soon: the client may come again with its Last-Event-ID.
            said = self.wrapping.tell(fault(self.exchange, error), self.dialect, None)
            row.code = said.code
            yield b"event: error\n" + sse.frame(said.payload)
        finally:
            self.exchange.end("stream", code=row.code)
            recorder.close(self.exchange)
            self._release(self.held)
            self._release(self.weighed)

    @staticmethod
    def _release(holding: Holding | None) -> None:
        if holding:
            holding.release()

    async def _tail(self, reader: Reader) -> AsyncIterator[bytes]:
        """The events after the cursor, as they come; a comment when it is quiet."""
        clock = asyncio.get_running_loop().time
        oldest, due = clock() + settings.A2A_STREAM_SECONDS, clock() + KEY_SECONDS
        while True:
            if clock() > due:
                due = clock() + KEY_SECONDS
                if await bridge.ask(FindCaller(self.key)) is None:
                    yield sse.REVOKED
                    return
            page = await reader.page()
            if page:
                last = next((place for place, event in enumerate(page) if self._ends(event.state)), None)
                shown = page if last is None else page[: last + 1]
                if chunk := b"".join(self._framed(event, event.seq) for event in shown):
                    yield chunk
                self.exchange.row.last_seq = shown[-1].seq
                if last is not None:
                    return
                continue
            if readers.draining:
                yield sse.DRAINING
                return
            if clock() > oldest:
                yield sse.TOO_LONG
                return
            if not await reader.news(settings.A2A_PING_SECONDS) and not readers.draining:
                yield sse.PING

    def _framed(self, frame: Frame, seq: int | None) -> bytes:
        """One event; nothing for what the dialect does not show."""
        wire = self.dialect.encode_frame(frame, self.history_length)
        if wire is None:
            return b""
        whole = self.wrapping.head + wire + self.wrapping.tail
        data = sse.frame(with_links(whole, self.base) if MARK in whole else whole, seq)
        self.exchange.row.frames += 1
        self.exchange.row.response_bytes += len(data)
        if isinstance(frame, Message):
            self.exchange.keep(whole)
        return data

    def _ends(self, state: str | None) -> bool:
        """Terminal states end every stream; a question ends that of a send, while missing credentials come out of
        band and leave it open (docs/protocol.md#streams)."""
        if state is None:
            return False
        return state in TERMINAL or (state == TaskState.INPUT_REQUIRED and not self.stays)
