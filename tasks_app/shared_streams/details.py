"""The participants and the chunks of a shared stream, as operators read them over their API and by command."""

from collections.abc import Callable
from typing import Any

import orjson

from tasks_app.models import Chunk, Participant, SharedStream
from tasks_app.operators import columns

LIMIT, MOST = 50, 500
"""Chunks of a page by default, and at most."""


def details_of(
    row: SharedStream, link: Callable[[str], str], before: int | None = None, limit: int = LIMIT
) -> dict[str, Any]:
    """Return the metadata, the participants, and a page of chunks in their order.

    The page has the newest chunks, or those before a number. `before` of the result leads to the older ones.
    `link` puts links in the place of references to files, which are secrets.
    """
    participants = Participant.objects.filter(stream_id=row.pk).order_by("pk").values_list("name", "principal_id")
    chunks, rest = page_of(row.pk, before, limit)
    return {
        "metadata": orjson.loads(row.metadata) if row.metadata else None,
        "participants": [{"name": name, "kind": "account" if id else "agent"} for name, id in participants],
        "chunks": [
            {name: getattr(chunk, name) for name in columns.CHUNK} | {"parts": orjson.loads(link(chunk.parts))}
            for chunk in chunks
        ],
        "before": rest,
    }


def page_of(stream_id: str, before: int | None, limit: int) -> tuple[list[Chunk], int | None]:
    """Return up to `limit` chunks before a number in their order, and the number before which others are, if any."""
    rows = Chunk.objects.filter(stream_id=stream_id).order_by("-seq")
    chunks = list((rows if before is None else rows.filter(seq__lt=before))[:limit])[::-1]
    return chunks, chunks[0].seq if chunks and chunks[0].seq > 1 else None
