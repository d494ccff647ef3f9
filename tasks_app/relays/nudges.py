"""Nudges: hints that a remote task has changed, which end the pause of the relay that polls it.

A nudge is a hint about our task with the sequence number 0, which no event has. Readers of the task take no notice of
it. It reaches other processes as all hints do, and a lost one costs the rest of a pause.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from tasks_app.hints import Reached, hints

_polls: set[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = set()
"""The tasks that relays of this process poll, with the event that ends the pause of each."""


def listen() -> None:
    """Pass nudges on to the relays of this process from now on."""
    hints.forget(_receive)
    hints.listen(_receive)


def nudge(task_ids: Sequence[str]) -> None:
    """Let the relays of these tasks look at once, in whatever process they are."""
    hints.publish([Reached(task_id, 0, None) for task_id in task_ids])


@contextmanager
def nudges_of(task_id: str) -> Iterator[asyncio.Event]:
    """Yield an event that each nudge of the task sets. The caller clears it."""
    poll = (task_id, asyncio.get_running_loop(), asyncio.Event())
    _polls.add(poll)
    try:
        yield poll[2]
    finally:
        _polls.discard(poll)


def _receive(news: list[Reached]) -> None:
    """Set the events of the tasks that are nudged, from any thread."""
    nudged = {item.task_id for item in news if item.seq == 0} if _polls else None
    if not nudged:
        return
    for task_id, loop, event in tuple(_polls):
        if task_id in nudged:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(event.set)
