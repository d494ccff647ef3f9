"""Expired codes and tokens of our OAuth server, also those of clients that ask for no more."""

import time
from contextlib import suppress
from functools import partial

from django.conf import settings

from tasks_app.database.locks import LockRefused
from tasks_app.upkeep.deletion import run_on_lane

ROWS = 200
"""Rows that one step looks at."""
STEPS = 20
"""Steps of one sweep at most. It goes on while at least half of the rows have expired."""
PASS_SECONDS = 600.0
"""Seconds from the end of the last table to the next pass."""
TABLES = 3


class ExpiredTokens:
    """The progress of this process through the tables of codes and tokens, some steps in each sweep.

    Processes that do the same at once do no harm: an expired row stays expired.
    """

    def __init__(self) -> None:
        self.table = self.place = 0
        self.resumes_at = float("-inf")

    @property
    def rests(self) -> bool:
        """True from the end of the last table to the next pass."""
        return time.monotonic() < self.resumes_at

    def advance(self) -> None:
        """Look at the next rows, and delete those that have expired."""
        if not settings.A2A_OAUTH:
            return
        with suppress(LockRefused):  # The next sweep tries again.
            for _ in range(STEPS):
                if self.rests or self._forget_next() < ROWS / 2:
                    break

    def _forget_next(self) -> int:
        """Take one step, and return the number of deleted rows. Raises LockRefused."""
        from tasks_app.oauth.expiry import forget_next  # it needs the toolkit, which other servers do not have

        place, count = run_on_lane(partial(forget_next, self.table, self.place, ROWS))
        self.place = place or 0
        if place is None:
            self.table = (self.table + 1) % TABLES
            self.resumes_at = time.monotonic() + (0.0 if self.table else PASS_SECONDS)
        return count


expired_tokens = ExpiredTokens()
"""The progress of this process."""
