"""The start of several runs on one loop."""

from collections.abc import Callable, Sequence

from tasks_app.runner.execution import Execution
from tasks_app.runner.loops import RunLoop


def start_together(runs: Sequence[Execution], place: RunLoop, on_end: Callable[[Execution], None]) -> None:
    """Begin the runs on the loop, unless they have begun elsewhere.

    One wake-up is for all of them, because a wake-up of a loop is a system call. A run that waits for a stuck loop may
    be started on another one as well, and begins there.
    """

    def begin(movable: Sequence[Execution]) -> None:
        for run in movable:
            run.begin(place, on_end)

    if movable := [run for run in runs if run.move(place)]:
        place.call(begin, movable)
