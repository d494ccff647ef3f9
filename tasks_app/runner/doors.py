"""Watches the event loop of the doors, on which async quick agents run inside the call. An agent that blocks it delays
all callers of the process. It can be neither moved nor ended, so the log names it, and /readyz afterwards."""

import asyncio
import logging
import threading
import time

from a2a.run import Run
from tasks_app.runner.late import latecomers
from tasks_app.runner.loops import LATE, Pulse
from tasks_app.runner.play import play
from tasks_app.runner.stacks import Spot, find_local, frames_of, spot_of

log = logging.getLogger(__name__)
LOOK = 0.25
"""Seconds between two looks."""
LONG = 5.0
"""Seconds after which the log names any call that blocks the loop."""
REPEAT = 60.0
"""Seconds for which /readyz has the sentence, and after which it is logged again."""


class Doors:
    """A thread that looks at the loop on which it was started."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.sentence = ""
        self.log_time = float("-inf")
        """The time when the sentence was logged."""

    def start(self) -> None:
        """Watch the running loop. A process without one has no doors."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self.stopping = threading.Event()
        arguments = (Pulse(loop), threading.get_ident(), self.stopping)
        threading.Thread(target=self._live, args=arguments, name="doors", daemon=True).start()

    def stop(self) -> None:
        self.stopping.set()

    def _live(self, pulse: Pulse, thread: int, stopping: threading.Event) -> None:
        before = ""
        while not stopping.wait(LOOK) and not pulse.loop.is_closed():
            now = self._blocker(thread, pulse.silence) if pulse.silence > LATE else ""
            if now and now == before and time.monotonic() - self.log_time > REPEAT:
                self.sentence, self.log_time = (
                    f"doors: {now} has blocked the event loop of all callers",
                    time.monotonic(),
                )
                log.error("%s. Call what blocks through asyncio.to_thread, or define the agent without async", now)
            before = now
            latecomers.look()
            pulse.ask()

    def _blocker(self, thread: int, silence: float) -> str:
        """Return the name and place of the call that the loop is at; empty for a short delay without an agent."""
        run: Run | None = find_local(thread, play, "run")
        spot: Spot | None = spot_of(frames_of(thread), run.agent.function if run else None)
        if run is None and silence < LONG:
            return ""
        name = f"quick agent {run.agent.name}" if run else "a call"
        return f"{name} at {spot.short}" if spot else ""

    def troubles(self) -> list[str]:
        """Return sentences about runs beyond their time, and about a call that blocked the loop in the last minute."""
        blocked = [self.sentence] if time.monotonic() - self.log_time < REPEAT else []
        return blocked + latecomers.troubles()


doors = Doors()
"""The watch over the doors of this process."""
