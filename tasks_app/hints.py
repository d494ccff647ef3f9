"""Hints: "task X reached N" and "there is something to run". Losing one costs latency, never truth.

A port with one adapter so far: listeners in this process. They are called on the thread that committed and must only
hand over (call_soon_threadsafe, an Event), never work.
"""

from collections.abc import Callable

from msgspec import Struct


class Reached(Struct, frozen=True):
    """A task has a new last event."""

    task_id: str
    seq: int
    state: str | None
    """The state the event set, if any; from a poll, the state there is."""
    message: bool = False
    """A message of the caller is among the events."""


Listener = Callable[[list[Reached]], None]
Offer = Callable[[], None]


class Hints:
    """Who wants to know, in this process."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._offers: tuple[Offer, ...] = ()

    def listen(self, listener: Listener) -> None:
        """Calls the listener for every committed group from now on."""
        self._listeners = (*self._listeners, listener)

    def forget(self, listener: Listener) -> None:
        self._listeners = tuple(known for known in self._listeners if known != listener)

    def on_offer(self, offer: Offer) -> None:
        """Calls this whenever a task became runnable."""
        self._offers = (*self._offers, offer)

    def forget_offer(self, offer: Offer) -> None:
        self._offers = tuple(known for known in self._offers if known != offer)

    def reached(self, news: list[Reached]) -> None:
        for listener in self._listeners:
            listener(news)

    def offer(self) -> None:
        for offer in self._offers:
            offer()


hints = Hints()
"""Of this process."""
