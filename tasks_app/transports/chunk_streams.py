"""Streams of chunks: the answer to the call, and then each chunk of a shared stream as a notification."""

from collections.abc import AsyncGenerator

from a2a.files import MARK
from a2a.shared_streams import ChunkDocument, SharedStreamDocument, SharedStreamState
from tasks_app.event_log.readers import LogRow, readers
from tasks_app.files import with_links
from tasks_app.shared_streams.reading import ChunkReader
from tasks_app.transports.streams import Page, Stream


class ChunkStream(Stream):
    """The answer to a call that follows a shared stream. It ends when the shared stream is closed."""

    async def _begin(self) -> AsyncGenerator[Page, None]:
        row, first, self.first = self.exchange.row, self.first, None
        if not isinstance(first, SharedStreamDocument) or self.exchange.encode is None:
            raise TypeError("a stream of chunks begins with its shared stream")
        row.first_seq = row.last_seq = after = first.seq if self.after is None else min(self.after, first.seq)
        async with readers.attend(ChunkReader(first.id, after)) as reader:
            answer = bytes(self.exchange.encode(first))
            self.exchange.keep(answer)
            row.frames += 1
            yield [(after, answer)]
            if first.state is not SharedStreamState.CLOSED or after < first.seq:
                async for page in self._tail(reader):
                    yield page

    def _encode_row(self, row: LogRow) -> Page:
        if not isinstance(row, ChunkDocument) or self.language.encode_chunk is None:
            raise TypeError(f"{self.language.name} has no chunks")
        notification = self.language.encode_chunk(row)
        self.exchange.row.frames += 1
        return [(row.seq, with_links(notification, self.base) if MARK in notification else notification)]

    def _ends(self, state: str | None) -> bool:
        return state == SharedStreamState.CLOSED
