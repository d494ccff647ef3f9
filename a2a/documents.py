"""The stored form of tasks and events: JSON of A2A 1.0 in pieces, which a 1.0 answer contains as they are."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import orjson
from msgspec import Struct

from a2a.files import SCHEME

EventKind = Literal["task", "statusUpdate", "artifactUpdate", "message"]
"""The member of a 1.0 StreamResponse that carries the event. `message` is a message of the caller, which no stream
shows."""


PIECE = 65_536
"""Characters of a large text that are encoded at a time. Python holds its interpreter lock while it encodes a text, so
one long call would stop every other thread."""


SMALL = 4_096
"""Bytes up to which a piece is joined with its neighbour."""


class Pieces:
    """A large JSON text in UTF-8, cut into pieces.

    A large block costs more than its copy: the kernel gives memory for it page by page, and Python holds its
    interpreter lock meanwhile.
    """

    __slots__ = ("parts", "size")

    def __init__(self, parts: Iterable[bytes]) -> None:
        """Store the parts in order, small ones joined with their neighbours."""
        self.parts: list[bytes] = []
        small: list[bytes] = []
        for part in parts:
            small.append(part)
            if len(part) > SMALL:
                self.parts.append(b"".join(small))
                small = []
        if small:
            last = self.parts.pop() if self.parts else b""
            self.parts.append(b"".join([last, *small]))
        self.size = sum(map(len, self.parts))

    def __len__(self) -> int:
        return self.size

    def __bytes__(self) -> bytes:
        return b"".join(self.parts)


Encoded = bytes | Pieces
"""A JSON text in UTF-8; a large one is in pieces."""


def split_text(text: str) -> list[bytes]:
    """Return a text in UTF-8, in pieces. A text that may contain references to files is not cut, so that no reference
    is."""
    if len(text) <= PIECE or _may_refer(text):
        return [text.encode()]
    return [text[place : place + PIECE].encode() for place in range(0, len(text), PIECE)]


def _may_refer(text: str) -> bool:
    """Return whether a large text contains the scheme of references to files. It is searched piece by piece."""
    size = PIECE + len(SCHEME) - 1
    return any(SCHEME in text[place : place + size] for place in range(0, len(text), PIECE))


def encode_pieces(texts: list[str]) -> Encoded:
    """Return the texts as one in UTF-8."""
    if sum(map(len, texts)) <= PIECE:
        return "".join(texts).encode()
    return Pieces([piece for text in texts for piece in split_text(text)])


def join_pieces(parts: list[Encoded]) -> Encoded:
    """Return the parts as one text."""
    if sum(map(len, parts)) <= PIECE:
        return b"".join(map(bytes, parts))
    return Pieces([piece for part in parts for piece in (part.parts if isinstance(part, Pieces) else [part])])


def enclose(head: bytes, text: Encoded, tail: bytes) -> Encoded:
    """Return the text between `head` and `tail`."""
    if isinstance(text, Pieces):
        return Pieces([head, *text.parts, tail])
    return b"".join((head, text, tail))


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
    long_history: Pieces | None = None
    """The history of a large task that is read only to be sent; `history` is None then."""
    metadata: str | None = None
    agent: str = ""
    """The name of its agent; empty if the reader did not look it up. No dialect of A2A shows it."""

    @property
    def size(self) -> int:
        """The characters of its artifacts and its history."""
        return len(self.artifacts or "") + len(self.history or "") + len(self.long_history or b"")

    def json(self, history_length: int | None = None, *, show_empty: bool = False) -> Encoded:
        """Return the 1.0 JSON of the task.

        `history_length` is the number of newest messages to include, None for all (A2A 1.0, 3.2.4). Empty lists are
        omitted, as in ProtoJSON; `show_empty` includes an empty list of artifacts (3.1.4).
        """
        pieces = [f'{{"id":{quote(self.id)},"contextId":{quote(self.context_id)},"status":{self.status}']
        if self.artifacts is not None and (show_empty or self.artifacts != "[]"):
            pieces.append(f',"artifacts":{self.artifacts}')
        end = "}" if self.metadata is None else f',"metadata":{self.metadata}}}'
        if self.long_history is not None and history_length is None:
            return join_pieces([encode_pieces([*pieces, ',"history":']), self.long_history, end.encode()])
        history = cut(self._history, history_length)
        if history is not None:
            pieces.append(f',"history":{history}')
        pieces.append(end)
        return encode_pieces(pieces)

    @property
    def _history(self) -> str | None:
        return self.history if self.long_history is None else bytes(self.long_history).decode()


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
    at: datetime | None = None
    """The time of the event; None for a reader that did not look it up."""
    notice: str = ""
    """The Notice value under the filter of its reader; empty for a reader without a filter."""

    @property
    def size(self) -> int:
        """The characters of the payload."""
        return len(self.payload)

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
