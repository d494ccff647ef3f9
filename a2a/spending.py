"""The money of one task: what its runs have reported, and the most that it may cost."""

import threading
from collections.abc import Callable

from a2a.money import show_usd


class Spending:
    """The reports of a run, added to those of the task's earlier runs. Any thread of the agent may report."""

    def __init__(self, limit: int | None = None, spent: int = 0) -> None:
        self.limit = limit
        """The most that the task may cost, in millionths; None without a limit."""
        self.spent = spent
        """The sum of all reports, in millionths."""
        self.on_report: Callable[[int], object] = _ignore
        """Called with the amount of each report, on the thread of the agent."""
        self._closed: int | None = None
        self._lock = threading.Lock()

    @property
    def left(self) -> int | None:
        """The rest of the limit, in millionths, negative if the task has cost more; None without a limit."""
        return None if self.limit is None else self.limit - self.spent

    def narrow(self, limit: int) -> None:
        """Set the limit, in millionths, unless there is a lower one."""
        self.limit = limit if self.limit is None else min(self.limit, limit)

    def report(self, amount: int) -> bool:
        """Add an amount. Return whether the task is still within its limit."""
        with self._lock:
            self.spent += amount
            on_report = self.on_report
        on_report(amount)
        return self.limit is None or self.spent <= self.limit

    def close(self, on_late: Callable[[int], object]) -> int:
        """Return the sum of the reports, in millionths, to be written for good.

        Later reports, as those of an agent that goes on after the end of its run, go to `on_late`, and no report is
        lost in between. Only the first call has an effect: a later one returns the same sum.
        """
        with self._lock:
            if self._closed is None:
                self._closed, self.on_report = self.spent, on_late
            return self._closed

    def describe(self) -> str:
        """Return the sentence for a task that has cost more than its limit."""
        return (
            f"The budget of the task is exceeded: it has cost {show_usd(self.spent)} USD, "
            f"and may cost {show_usd(self.limit or 0)} USD."
        )


def _ignore(amount: int) -> None:
    """Do nothing, for a run without a server."""
