"""The translation of a task's events into the chunks of a shared stream, and of the participants' parts into rows."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import dumps, encode_part, event_of
from a2a.documents import EventDocument
from a2a.events import ArtifactAdded, StatusChanged
from a2a.shared_streams import ChunkRole, SharedStreamState
from a2a.states import QUIET, TaskState
from a2a.types import Part
from tasks_app import clock
from tasks_app.shared_streams.log import Entry

INTERRUPTED = "The answer was interrupted and begins anew: its chunks so far do not count."


def encode_parts(parts: Sequence[Part]) -> str:
    """Return the stored form of parts."""
    return dumps([encode_part(part) for part in parts])


def text_part(text: str) -> Part:
    """Return a part of plain text."""
    return Part(text=text, media_type="text/plain")


def digest_of(parts: str, role: ChunkRole, *, is_last: bool) -> str:
    """Return a digest of the content of a chunk, by which a repeat is recognised."""
    return sha256(dumps([role.value, is_last, parts]).encode()).hexdigest()


def translate(agent: str, events: Sequence[EventDocument], now: datetime) -> tuple[list[Entry], int, bool]:
    """Return the chunks of events of an agent's task, the last event that they cover, and whether the answer is over.

    Results become chunks, and so does the message with which the agent ends or asks. Reports of progress do not,
    because they are no part of the answer. The chunk of the end is the last one. An attempt that ended before is closed
    by a chunk of its own, because the next attempt begins anew.
    """
    entries: list[Entry] = []
    for event in events:
        change = event_of(event)
        if isinstance(change, ArtifactAdded) and change.artifact.parts:
            entries.append(_entry(agent, change.artifact.parts, event, now))
        if isinstance(change, StatusChanged) and change.status.state is TaskState.SUBMITTED:
            entries.append(_interruption(agent, event, now))
        if isinstance(change, StatusChanged) and change.status.state in QUIET:
            message = change.status.message
            if change.status.state is TaskState.AUTH_REQUIRED:
                # The agent goes on by itself once the credentials have come by another way.
                entries += [_entry(agent, message.parts, event, now)] if message else []
                continue
            if message or not entries or entries[-1].ends_attempt:
                entries.append(_entry(agent, message.parts if message else (text_part(""),), event, now))
            entries[-1] = replace(entries[-1], is_last=True)
            return entries, event.seq, True
    return entries, events[-1].seq, False


def _entry(agent: str, parts: Sequence[Part], event: EventDocument, now: datetime) -> Entry:
    return Entry(
        author=agent,
        role=ChunkRole.AGENT,
        parts=encode_parts(parts),
        at=now,
        task_id=event.task_id,
        task_seq=event.seq,
    )


def _interruption(agent: str, event: EventDocument, now: datetime) -> Entry:
    """Return the chunk that ends the chunks of an attempt, if it has any."""
    parts = (text_part(INTERRUPTED), Part(data={"interrupted": True}))
    entry = _entry(agent, parts, event, now)
    return replace(entry, role=ChunkRole.SYSTEM, is_last=True, ends_attempt=True)


def state_entry(author: str, state: SharedStreamState, reason: str, *, principal_id: int | None = None) -> Entry:
    """Return the chunk that sets a state of a shared stream, with the reason as its text."""
    return Entry(
        author=author,
        principal_id=principal_id,
        role=ChunkRole.SYSTEM,
        parts=encode_parts([text_part(reason or f"the stream is {state.value}")]),
        at=clock.now(),
        is_last=True,
        state=state,
        reason=reason,
    )
