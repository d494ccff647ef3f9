"""The routine that stores what a process counts instead of writing a row for each call."""

from tasks_app.audit.refused_calls import refused_calls
from tasks_app.callers.last_use import last_uses
from tasks_app.exchanges.refusals import tally
from tasks_app.upkeep.routine import Routine


class Counts(Routine):
    """The thread that stores counts of refused calls and last uses of keys. Every process with doors has one."""

    name = "counts"
    title = "storing counts of refused calls and last uses of keys"

    def run_round(self) -> None:
        """Store all that was counted since the last round."""
        tally.flush()
        refused_calls.flush()
        last_uses.flush()

    def stop(self) -> None:
        was_running = self.thread is not None
        super().stop()
        if was_running:
            self.try_round()


count_routine = Counts()
"""The routine of this process."""
