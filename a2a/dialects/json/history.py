"""The history of a task, joined from the stored texts of its events without parsing the messages."""

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from a2a.documents import EventDocument, Pieces, split_text

_HEAD = '{"message":'
"""The beginning of the payload of a message."""


class _Status(Struct):
    message: Raw | UnsetType = UNSET


class _Task(Struct):
    status: Raw
    history: Raw = Raw(b"[]")


class _Message(Struct):
    message: Raw
    status: Raw | UnsetType = UNSET


class _StatusUpdate(Struct):
    status: Raw


class History:
    """The history of a task while events are added, by the rules of `fold` in a2a/events.py."""

    def __init__(self, stored: str = "[]", status: str = "{}") -> None:
        """Begin with a stored history and the status as of the same event."""
        self.parts = split_text(stored[1:-1])
        """The messages, with commas between them."""
        self.status: bytes | Raw = status.encode()
        """The JSON of the status. Its message moves into the history when another status comes."""

    def take(self, event: EventDocument) -> None:
        """Add the messages that the event moves into the history."""
        match event.kind:
            case "task":
                task = msgspec.json.decode(event.payload, type=_Task)
                self.parts = [bytes(task.history)[1:-1]]
                self.status = task.status
            case "statusUpdate":
                self._set(msgspec.json.decode(event.payload, type=_StatusUpdate).status)
            case "message":
                self._take_message(event)
            case "artifactUpdate":
                pass

    def text(self) -> Pieces:
        """Return the history as JSON."""
        return Pieces([b"[", *self.parts, b"]"])

    def _take_message(self, event: EventDocument) -> None:
        if event.state is None and event.payload.startswith(_HEAD):
            # The message is the only member, so the text around it is known.
            self._add(split_text(event.payload[len(_HEAD) : -1]))
            return
        wire = msgspec.json.decode(event.payload, type=_Message)
        if wire.status is not UNSET:
            self._set(wire.status)
        self._add([bytes(wire.message)])

    def _set(self, status: Raw) -> None:
        before = msgspec.json.decode(self.status, type=_Status).message
        if before is not UNSET:
            self._add([bytes(before)])
        self.status = status

    def _add(self, message: list[bytes]) -> None:
        if any(self.parts):
            self.parts.append(b",")
        self.parts += message
