"""Names quick agents whose runs go on beyond their time, in the log and in /readyz. Nothing can end such a run."""

import logging
import time
from collections.abc import Iterator

from tasks_app.runner import quick
from tasks_app.runner.loops import LATE
from tasks_app.runner.stacks import Spot, frames_of, spot_of, thread_of, waiting_frames

log = logging.getLogger(__name__)
REPEAT = 60.0
"""Seconds after which the log names the same agent again."""
ADVICE = "Let it end when it is cancelled, give its calls time limits of their own, or define it without quick=True"


class Latecomers:
    """The quick agents of this process with runs beyond their time."""

    def __init__(self) -> None:
        self.log_times: dict[str, float] = {}
        """The time when the log last named each agent."""

    def look(self) -> None:
        """Name each agent in the log, once a minute."""
        for agent, sentence in _sentences():
            if time.monotonic() - self.log_times.get(agent, -REPEAT) >= REPEAT:
                self.log_times[agent] = time.monotonic()
                log.warning("%s. %s", sentence, ADVICE)

    def troubles(self) -> list[str]:
        """Return a sentence for each agent."""
        return [f"doors: {sentence}" for _, sentence in _sentences()]


def _sentences() -> Iterator[tuple[str, str]]:
    """Yield the agents and what to say of each, which names the oldest of its runs."""
    for agent, threads in list(quick.THREADS.items()):
        runs = list(threads.late.values())
        if not runs:
            continue
        late = runs[0]
        seconds = time.monotonic() - late.since
        if seconds > LATE:
            spot = _spot_of(late)
            where = f" at {spot.short}" if spot else ""
            count = f"late runs: {len(runs)} (its calls are refused from {quick.SLOTS} on)"
            name = f"quick agent {agent}{where} (task {late.run.task_id})"
            yield agent, f"{name} has gone on for {seconds:.0f} s beyond its time; {count}"


def _spot_of(late: quick.Late) -> Spot | None:
    frames = waiting_frames(late.steps) if late.steps is not None else frames_of(thread_of(late.run))
    return spot_of(frames, late.run.agent.function)


latecomers = Latecomers()
"""The latecomers of this process."""
