"""The participants and the chunks of a shared stream, as operators read them over their API and by command."""

from typing import Any

import orjson

from tasks_app.models import Chunk, Participant, SharedStream
from tasks_app.operators import columns

MOST = 1_000
"""Newest chunks that are shown."""


def details_of(row: SharedStream) -> dict[str, Any]:
    """Return the metadata, the participants, and the newest chunks in their order."""
    participants = Participant.objects.filter(stream_id=row.pk).order_by("pk").values_list("name", "principal_id")
    chunks = Chunk.objects.filter(stream_id=row.pk).order_by("-seq").values("parts", *columns.CHUNK)[:MOST]
    return {
        "metadata": orjson.loads(row.metadata) if row.metadata else None,
        "participants": [{"name": name, "kind": "account" if id else "agent"} for name, id in participants],
        "chunks": [chunk | {"parts": orjson.loads(chunk["parts"])} for chunk in reversed(chunks)],
    }
