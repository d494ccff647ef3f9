"""Who wants to know, in this process, and where to pass on what others want to know.

Listeners are called on the thread that committed and must only hand over (call_soon_threadsafe, an Event), never work.
"""

from collections.abc import Callable

from msgspec import Struct

from tasks_app.hints.alarm import Alarm


class Reached(Struct, frozen=True, array_like=True):
    """A task has a new last event."""

    task_id: str
    seq: int
    state: str | None
    """The state the event set, if any; from a poll, the state there is."""
    message: bool = False
    """A message of the caller is among the events."""


Listener = Callable[[list[Reached]], None]
Offer = Callable[[frozenset[str]], None]
"""Is given the queues in which something became runnable; none of them: it may be any."""
Due = Callable[[], None]
ANY: frozenset[str] = frozenset()


class Hints:
    """The listeners of this process."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._relays: tuple[Listener, ...] = ()
        self._offers: tuple[Offer, ...] = ()
        self._dues: tuple[Due, ...] = ()
        self._alarm = Alarm(self.offer)

    def listen(self, listener: Listener) -> None:
        """Calls the listener for every committed group from now on, of this process and of others."""
        self._listeners = (*self._listeners, listener)

    def forget(self, listener: Listener) -> None:
        self._listeners = tuple(known for known in self._listeners if known != listener)

    def relay(self, relay: Listener) -> None:
        """Calls this for the groups committed in this process alone: to tell other processes."""
        self._relays = (*self._relays, relay)

    def forget_relay(self, relay: Listener) -> None:
        self._relays = tuple(known for known in self._relays if known != relay)

    def on_offer(self, offer: Offer) -> None:
        """Calls this whenever a task became runnable."""
        self._offers = (*self._offers, offer)

    def forget_offer(self, offer: Offer) -> None:
        self._offers = tuple(known for known in self._offers if known != offer)

    def reached(self, news: list[Reached]) -> None:
        """Committed here."""
        self.heard(news)
        for relay in self._relays:
            relay(news)

    def heard(self, news: list[Reached]) -> None:
        """Committed somewhere."""
        for listener in self._listeners:
            listener(news)

    def offer(self, queues: frozenset[str] = ANY) -> None:
        for offer in self._offers:
            offer(queues)

    def offer_in(self, seconds: float) -> None:
        """Offers then: a task may be claimed when its pause is over."""
        self._alarm.set(seconds)

    def on_due(self, due: Due) -> None:
        """Calls this whenever this process has written a delivery; others find it when they look."""
        self._dues = (*self._dues, due)

    def forget_due(self, due: Due) -> None:
        self._dues = tuple(known for known in self._dues if known != due)

    def due(self) -> None:
        for due in self._dues:
            due()


hints = Hints()
"""The hints of this process."""
