"""The exceptions for which asyncio leaves an event loop: SystemExit and KeyboardInterrupt. In a task or callback that
an agent made, they are an error of its run."""

import logging
import traceback

from tasks_app.runner.stacks import run_on

log = logging.getLogger(__name__)


def fail_culprit(error: BaseException) -> None:
    """Fail the run whose agent made the task or callback that raised the error. Called on the thread of its loop."""
    run = run_on([frame for frame, _ in traceback.walk_tb(error.__traceback__)])
    if run is None or run.finishing or run.stop:
        log.error("a task or callback that an agent left behind ended with %r", error, exc_info=error)
    else:
        run.crash_by(error)
