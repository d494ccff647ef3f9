"""The stored form of tasks and events: JSON of A2A 1.0 in pieces, which a 1.0 answer contains as they are."""

from typing import Literal

import orjson
from msgspec import Struct

EventKind = Literal["task", "statusUpdate", "artifactUpdate", "message"]
"""The member of a 1.0 StreamResponse that carries the event. `message` is a message of the caller, which no stream
shows."""


class TaskDocument(Struct, frozen=True, kw_only=True):
    """A task as of a sequence number. Each piece is the JSON text of a member; None is an absent member."""

    id: str
    context_id: str
    seq: int
    state: str
    """A TaskState value."""
    status: str
    artifacts: str | None = None
    """None where a list omits artifacts, "[]" for a task that has none."""
    history: str | None = None
    metadata: str | None = None

    def json(self, history_length: int | None = None, *, show_empty: bool = False) -> bytes:
        """Return the 1.0 JSON of the task.

        `history_length` is the number of newest messages to include, None for all (A2A 1.0, 3.2.4). Empty lists are
        omitted, as in ProtoJSON; `show_empty` includes an empty list of artifacts (3.1.4).
        """
        pieces = [f'{{"id":{quote(self.id)},"contextId":{quote(self.context_id)},"status":{self.status}']
        if self.artifacts is not None and (show_empty or self.artifacts != "[]"):
            pieces.append(f',"artifacts":{self.artifacts}')
        history = cut(self.history, history_length)
        if history is not None:
            pieces.append(f',"history":{history}')
        if self.metadata is not None:
            pieces.append(f',"metadata":{self.metadata}')
        pieces.append("}")
        return encode_pieces(pieces)


PIECE = 65_536
"""Characters of a large text that are encoded at a time."""


def encode_pieces(pieces: list[str]) -> bytes:
    """Return the pieces, joined, in UTF-8.

    Large texts are encoded in slices. Python holds its interpreter lock while it encodes a text, so one long call
    would stop every other thread; it releases the lock while it joins large bytes.
    """
    if sum(map(len, pieces)) <= PIECE:
        return "".join(pieces).encode()
    slices = [piece[place : place + PIECE].encode() for piece in pieces for place in range(0, len(piece), PIECE)]
    return b"".join(slices)


class EventDocument(Struct, frozen=True, kw_only=True):
    """One row of a task's log."""

    task_id: str
    context_id: str
    seq: int
    kind: EventKind
    payload: str
    """The JSON of the event's member, without taskId and contextId."""
    state: str | None = None
    """The TaskState value that the event sets; None if it sets none."""

    def json(self) -> bytes:
        """Return the 1.0 StreamResponse, which has exactly one member (A2A 1.0, 3.2.3)."""
        if self.kind == "task":
            return b'{"task":' + self.payload.encode() + b"}"
        ids = f'"taskId":{quote(self.task_id)},"contextId":{quote(self.context_id)},'
        return f'{{"{self.kind}":{{{ids}{self.payload[1:]}}}'.encode()


def cut(history: str | None, length: int | None) -> str | None:
    """Return the newest messages of a history as JSON, or None if none remain."""
    if history is None or history == "[]" or length == 0:
        return None
    if length is None:
        return history
    newest = orjson.loads(history)[-length:]
    return orjson.dumps(newest).decode()


def quote(text: str) -> str:
    """Return the text as a JSON string."""
    return orjson.dumps(text).decode()
