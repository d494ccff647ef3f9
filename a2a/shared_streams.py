"""Shared streams: conversations of several participants, whose chunks are numbered without gaps.

The values here are what operations return and languages encode. The states and the moves between them are data.
"""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from a2a.types import Json, Part


class SharedStreamState(StrEnum):
    """The state of a shared stream."""

    ACTIVE = "active"
    """Its participants may send."""
    PAUSED = "paused"
    """It takes no messages until a participant resumes it."""
    CLOSED = "closed"
    """It has ended."""


MOVES: dict[SharedStreamState, frozenset[SharedStreamState]] = {
    SharedStreamState.ACTIVE: frozenset({SharedStreamState.PAUSED, SharedStreamState.CLOSED}),
    SharedStreamState.PAUSED: frozenset({SharedStreamState.ACTIVE, SharedStreamState.CLOSED}),
    SharedStreamState.CLOSED: frozenset(),
}
"""The states that may follow each state. Only the log of shared streams reads it, and refuses every other move."""


class ChunkRole(StrEnum):
    """The author of a chunk, in the words of conversations."""

    USER = "user"
    AGENT = "agent"
    SYSTEM = "system"
    """The server, or a participant that speaks about the conversation itself."""


class SharedStreamDocument(Struct, frozen=True, kw_only=True):
    """A shared stream as of a sequence number."""

    id: str
    state: SharedStreamState
    participants: tuple[str, ...]
    """The names of its agents and accounts, in the order in which they were added."""
    seq: int
    """The number of its last chunk; 0 for a stream without any."""
    created_at: datetime
    closed_at: datetime | None = None
    reason: str = ""
    """Why it was paused or closed."""
    metadata: Json | None = None


class ChunkDocument(Struct, frozen=True, kw_only=True):
    """One row of the log of a shared stream: content of a participant, or a sentence about a new state."""

    stream_id: str
    seq: int
    """The number of the chunk in its stream, from 1 and without gaps."""
    author: str
    """The name of the participant. A chunk of the server has the name of the one who caused it."""
    role: ChunkRole
    parts: tuple[Part, ...]
    created_at: datetime
    is_last: bool = False
    """True for the last chunk of what its author had to say."""
    state: SharedStreamState | None = None
    """The state that the chunk sets, if any. The chunk that closes the stream is its last one."""
    size: int = 0
    """The characters of the parts in the log."""


class ChunkReceipt(Struct, frozen=True, kw_only=True):
    """The result of sending to a shared stream: the place of the chunk."""

    stream_id: str
    seq: int
    is_repeat: bool = False
    """True if the chunk was there before."""
