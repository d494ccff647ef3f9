"""The listeners for hints in this process, and the relays that pass its hints on.

They are called on the thread that committed. They must return at once: hand over by call_soon_threadsafe or an Event.
"""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from tasks_app.hints.alarm import Alarm


class Reached(Struct, frozen=True, array_like=True):
    """The hint that a task has a new last event."""

    task_id: str
    seq: int
    state: str | None
    """The state that the event set, if any. In a hint that comes from a poll, the task's state."""
    message: bool = False
    """Whether a message from the caller is among the events."""


Listener = Callable[[list[Reached]], None]
Offer = Callable[[frozenset[str]], None]
"""A function that is called with the queues that have a runnable task; ANY if the queue is not known."""
Due = Callable[[], None]
ANY: frozenset[str] = frozenset()


class DueRows(StrEnum):
    """Kinds of rows that this process looks for at once when it has written one."""

    DELIVERIES = "deliveries"
    BATCHES = "batches"
    QUESTIONS = "questions from Slack"


class Hints:
    """The listeners of this process."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._relays: tuple[Listener, ...] = ()
        self._offers: tuple[Offer, ...] = ()
        self._dues: tuple[tuple[str, Due], ...] = ()
        self._alarm = Alarm(self.offer)

    def listen(self, listener: Listener) -> None:
        """Call the listener for every group of commits from now on, of this process and of others."""
        self._listeners = (*self._listeners, listener)

    def forget(self, listener: Listener) -> None:
        self._listeners = tuple(other for other in self._listeners if other != listener)

    def relay(self, relay: Listener) -> None:
        """Call the relay for every group of commits of this process, to pass it on to others."""
        self._relays = (*self._relays, relay)

    def forget_relay(self, relay: Listener) -> None:
        self._relays = tuple(other for other in self._relays if other != relay)

    def on_offer(self, offer: Offer) -> None:
        """Call the function whenever a task has become runnable."""
        self._offers = (*self._offers, offer)

    def forget_offer(self, offer: Offer) -> None:
        self._offers = tuple(other for other in self._offers if other != offer)

    def publish(self, news: list[Reached]) -> None:
        """Pass hints on that this process has committed, to its listeners and to other processes."""
        self.notify(news)
        for relay in self._relays:
            relay(news)

    def notify(self, news: list[Reached]) -> None:
        """Pass hints on to the listeners of this process."""
        for listener in self._listeners:
            listener(news)

    def offer(self, queues: frozenset[str] = ANY) -> None:
        """Say that these queues have a runnable task."""
        for offer in self._offers:
            offer(queues)

    def offer_in(self, seconds: float) -> None:
        """Offer after that many seconds, when the pause of a task is over."""
        self._alarm.set(seconds)

    def on_due(self, kind: str, due: Due) -> None:
        """Call the function whenever this process has written a row of this kind. Other processes poll for them."""
        self._dues = (*self._dues, (kind, due))

    def forget_due(self, kind: str, due: Due) -> None:
        self._dues = tuple(other for other in self._dues if other != (kind, due))

    def due(self, kind: str) -> None:
        """Say that a row of this kind has been written."""
        for other, due in self._dues:
            if other == kind:
                due()


hints = Hints()
"""The hints of this process."""
