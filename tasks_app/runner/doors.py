"""The event loop of the doors, on which async quick agents run inside the call. One that blocks it holds up every
caller of the process. It can be neither moved nor ended, so it is named: in the log, and in /readyz afterwards."""

import asyncio
import logging
import threading
import time

from a2a.run import Run
from tasks_app.runner.loops import LATE, Pulse
from tasks_app.runner.quick import play_quickly
from tasks_app.runner.stacks import Spot, called_with, spot_of

log = logging.getLogger(__name__)
LOOK = 0.25
"""Seconds between two looks."""
LONG = 5.0
"""Seconds after which any call that blocks the loop is worth a line."""
SAID = 60.0
"""Seconds for which a sentence about it stands, and after which it is logged again."""


class Doors:
    """A thread that looks at the loop on which it was started."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.sentence = ""
        self.said = float("-inf")
        """When that was."""

    def start(self) -> None:
        """Watch the loop that runs now; where there is none, there are no doors."""
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
        while not stopping.wait(LOOK) and pulse.loop.is_running():
            now = self._blocker(thread, pulse.silence) if pulse.silence > LATE else ""
            if now and now == before and time.monotonic() - self.said > SAID:
                self.sentence, self.said = f"doors: {now} has blocked the event loop of all callers", time.monotonic()
                log.error("%s. Call what blocks through asyncio.to_thread, or define the agent without async", now)
            before = now
            pulse.ask()

    def _blocker(self, thread: int, silence: float) -> str:
        """Return what the loop is at, the same words as long as it stays there; empty for work of our own that is only
        slow."""
        run: Run | None = called_with(thread, play_quickly, "run")
        spot: Spot | None = spot_of(thread, run.agent.function if run else None)
        if run is None and silence < LONG:
            return ""
        name = f"quick agent {run.agent.name}" if run else "a call"
        return f"{name} at {spot.short}" if spot else ""

    def troubles(self) -> list[str]:
        """Return the sentence about what blocked the loop in the last minute, if anything did."""
        return [self.sentence] if time.monotonic() - self.said < SAID else []


doors = Doors()
"""The watch over the doors of this process."""
