"""The inbox of a run: messages that arrive while the agent works, and how far the agent has read them."""

from collections.abc import MutableSequence
from typing import overload

from a2a.types import Message


class Inbox(MutableSequence[Message]):
    """A list of messages for the agent. Any use of the list counts as reading all of them."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self.entries: list[tuple[int, Message]] = []
        """All messages, each with the sequence number of its event. Access to this list does not count as reading."""
        self._newest = 0
        """The sequence number of the newest message."""
        self.cursor = 0
        """The sequence number of the newest message that the agent has read; 0 before the first."""

    def show(self, message: Message, seq: int) -> None:
        """Add the message of the event with this sequence number."""
        self._messages.append(message)
        self.entries.append((seq, message))
        self._newest = seq

    def _read(self) -> list[Message]:
        """Return the messages, and count them as read."""
        self.cursor = self._newest
        return self._messages

    @overload
    def __getitem__(self, place: int) -> Message: ...
    @overload
    def __getitem__(self, place: slice) -> list[Message]: ...
    def __getitem__(self, place: int | slice) -> Message | list[Message]:
        return self._read()[place]

    def __setitem__(self, place, value) -> None:  # type: ignore[no-untyped-def]  # the overloads of list
        self._read()[place] = value

    def __delitem__(self, place: int | slice) -> None:
        del self._read()[place]

    def __len__(self) -> int:
        return len(self._read())

    def insert(self, place: int, value: Message) -> None:
        self._read().insert(place, value)

    def __eq__(self, other: object) -> bool:
        return self._read() == (other._messages if isinstance(other, Inbox) else other)

    __hash__ = None  # type: ignore[assignment]  # mutable, like a list

    def __repr__(self) -> str:
        return repr(self._messages)
