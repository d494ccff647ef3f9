"""Reads of shared streams, in groups, and the reader that follows one as readers of tasks follow their logs."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import orjson
from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from msgspec import Struct

from a2a.dialects.json.json_1_0 import decode_part
from a2a.shared_streams import ChunkDocument, ChunkRole, SharedStreamDocument, SharedStreamState
from tasks_app.database.bridge import bridge
from tasks_app.database.sql import length_of, on_postgres
from tasks_app.database.work import Work
from tasks_app.event_log.read_events import PAGE_SIZE, first_rows
from tasks_app.event_log.readers import LogReader
from tasks_app.hints import Reached
from tasks_app.models import Chunk, Participant, SharedStream

PAGE = 100
"""Chunks read at once."""


class ReadSharedStream(Work[SharedStreamDocument | None], Struct, frozen=True, kw_only=True):
    """A read of a shared stream by one of its participants; None for any other principal, and for no stream.

    A caller whose credential is for certain agents reads only streams in which no other agent takes part.
    """

    lane = "read"
    repeatable = True

    stream_id: str
    principal_id: int
    agents: frozenset[str] | None = None

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[SharedStreamDocument | None]:
        return [_read(item) for item in items]


def _read(item: ReadSharedStream) -> SharedStreamDocument | None:
    rows = SharedStream.objects.filter(pk=item.stream_id, participants__principal_id=item.principal_id)
    if item.agents is not None:
        agents = Participant.objects.filter(stream_id=OuterRef("pk"), principal_id__isnull=True)
        rows = rows.exclude(Exists(agents.exclude(name__in=item.agents)))
    row = None if "\0" in item.stream_id else rows.first()
    return document_of(row) if row else None


def document_of(row: SharedStream) -> SharedStreamDocument:
    """Return the document of a row, with the names of its participants."""
    names = Participant.objects.filter(stream_id=row.pk).order_by("pk").values_list("name", flat=True)
    return SharedStreamDocument(
        id=row.pk,
        state=SharedStreamState(row.state),
        participants=tuple(names),
        seq=row.last_seq,
        created_at=row.created_at,
        closed_at=row.closed_at,
        reason=row.reason,
        metadata=orjson.loads(row.metadata) if row.metadata else None,
    )


class ReadChunks(Work[list[ChunkDocument]], Struct, frozen=True, kw_only=True):
    """A read of a page of the chunks after a number."""

    lane = "read"
    repeatable = True

    stream_id: str
    after: int
    most: int = PAGE_SIZE
    """Characters of parts with which the page ends."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[list[ChunkDocument]]:
        return [_read_chunks(item) for item in items]


def _read_page(rows: QuerySet[Chunk], most: int, *columns: str) -> Iterable[Sequence[Any]]:
    """Return the columns of a page, which ends with the chunk that makes up so many characters."""
    sized = rows.annotate(size_of_parts=length_of("parts"))
    if not on_postgres():
        return first_rows(sized.values_list("size_of_parts", *columns)[:PAGE].iterator(chunk_size=1), most)
    # A client of PostgreSQL gets all rows of a statement, and the server knows the size of a text without reading it.
    numbers = [seq for (seq,) in first_rows(sized.values_list("size_of_parts", "seq")[:PAGE], most)]
    return rows.filter(seq__in=numbers).values_list(*columns)


def _read_chunks(item: ReadChunks) -> list[ChunkDocument]:
    rows = Chunk.objects.filter(stream_id=item.stream_id, seq__gt=item.after).order_by("seq")
    columns = ("seq", "author", "role", "parts", "is_last", "state", "created_at")
    return [
        ChunkDocument(
            stream_id=item.stream_id,
            seq=seq,
            author=author,
            role=ChunkRole(role),
            parts=tuple(decode_part(part) for part in orjson.loads(parts)),
            is_last=is_last,
            state=SharedStreamState(state) if state else None,
            created_at=created_at,
            size=len(parts),
        )
        for seq, author, role, parts, is_last, state, created_at in _read_page(rows, item.most, *columns)
    ]


class LastChunks(Work[list[Reached]], Struct, frozen=True):
    """A read of the last numbers and states of shared streams, for readers that missed a hint."""

    lane = "read"
    repeatable = True

    ids: tuple[str, ...]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[list[Reached]]:
        return [_read_latest(item.ids) for item in items]


def _read_latest(ids: Sequence[str]) -> list[Reached]:
    rows = SharedStream.objects.filter(pk__in=ids).values_list("pk", "last_seq", "state")
    return [Reached(*row) for row in rows]


class ChunkReader(LogReader):
    """A cursor in the log of one shared stream."""

    @staticmethod
    def latest(ids: tuple[str, ...]) -> Work[list[Reached]]:
        return LastChunks(ids)

    async def page(self, most: int = PAGE_SIZE) -> list[ChunkDocument]:
        newest, item = self.newest, ReadChunks(stream_id=self.id, after=self.cursor, most=most)
        chunks = await bridge.ask(item, settings.A2A_LEASE_SECONDS)
        self.advance(chunks[-1].seq if chunks else None, newest)
        return chunks
