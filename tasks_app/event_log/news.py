"""News of the log for readers and dispatchers, after a commit."""

from collections.abc import Sequence

from a2a.states import RUNNABLE
from tasks_app.hints import Reached, hints


def notify(news: Sequence[Reached]) -> None:
    """Pass on how far tasks have come. Call this after the commit: readers then read the log, and runners claim."""
    if news:
        hints.publish(list(news))
        if any(item.state in RUNNABLE for item in news):
            hints.offer()
