"""A clock that stands still until a test moves its hand."""

from datetime import datetime, timedelta

from tasks_app import clock


class Hand:
    """The hand of the clock, called in place of `clock.now` and `clock.shared`."""

    def __init__(self) -> None:
        self.time = clock.now()

    def __call__(self) -> datetime:
        return self.time

    def on(self, **by: float) -> None:
        """Move the hand on, as by `seconds=5`."""
        self.time += timedelta(**by)
