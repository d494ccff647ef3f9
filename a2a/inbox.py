"""Messages that arrive during a run, and how far the agent has read them."""

from collections.abc import MutableSequence
from typing import overload

from a2a.types import Message


class Inbox(MutableSequence[Message]):
    """A list for the agent. Any use of it counts as reading all messages in it."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self.arrived: list[tuple[int, Message]] = []
        """All messages with the sequence numbers of their events. Access to this list does not count as reading."""
        self._shown = 0
        self.heard = 0
        """Sequence number of the newest event that the agent has read; 0 before the first."""

    def show(self, message: Message, seq: int) -> None:
        """Add the message of the event with this sequence number."""
        self._messages.append(message)
        self.arrived.append((seq, message))
        self._shown = seq

    def _looked(self) -> list[Message]:
        self.heard = self._shown
        return self._messages

    @overload
    def __getitem__(self, place: int) -> Message: ...
    @overload
    def __getitem__(self, place: slice) -> list[Message]: ...
    def __getitem__(self, place: int | slice) -> Message | list[Message]:
        return self._looked()[place]

    def __setitem__(self, place, value) -> None:  # type: ignore[no-untyped-def]  # as a list has it
        self._looked()[place] = value

    def __delitem__(self, place: int | slice) -> None:
        del self._looked()[place]

    def __len__(self) -> int:
        return len(self._looked())

    def insert(self, place: int, value: Message) -> None:
        self._looked().insert(place, value)

    def __eq__(self, other: object) -> bool:
        return self._looked() == (other._messages if isinstance(other, Inbox) else other)

    __hash__ = None  # type: ignore[assignment]  # it changes, like a list

    def __repr__(self) -> str:
        return repr(self._messages)
