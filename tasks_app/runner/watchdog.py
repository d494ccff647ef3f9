"""Finds agents that block an event loop or keep a thread beyond their time, and names them to operators. It fails a run
that blocks a loop at its timeout, which the loop itself cannot. It ends a process that is helpless."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from django.conf import settings
from msgspec import Struct

from a2a.agents import registry
from tasks_app.runner.execution import Execution
from tasks_app.runner.loops import LATE, MAX_STUCK, Loops, RunLoop
from tasks_app.runner.stacks import Spot, run_on, spot_of

log = logging.getLogger(__name__)
LOOK = 0.25
"""Seconds between two looks."""
OVERDUE = 0.5
"""Seconds after its timeout in which a run may end by itself."""
REPEAT = 60.0
"""Seconds after which the log names the same agent again."""
HOPELESS = 5.0
"""Seconds after which a loop or thread that hangs is not expected back."""
ADVICE = 'Call it through asyncio.to_thread, define the agent without async, or give it isolation="process".'
WAY_OUT = ' Give its calls time limits of their own, or the agent isolation="process".'
OnEnd = Callable[[Execution], None]


class Blocking(Struct, frozen=True):
    """A run that blocks a loop or keeps a thread, with its place in the code."""

    run: Execution
    since: float
    spot: Spot | None

    @property
    def name(self) -> str:
        where = f" at {self.spot.short}" if self.spot else ""
        return f"agent {self.run.read.agent}{where} (task {self.run.task_id})"

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since


class Watchdog:
    """A thread that looks at the loops and threads of the runner."""

    def __init__(
        self, loops: Loops, hanging: Collection[Execution], at_work: Callable[[], list[Execution]], on_end: OnEnd
    ) -> None:
        self.loops = loops
        self.hanging = hanging
        """The runner's set of runs that are over, and whose threads are still at work."""
        self.at_work = at_work
        self.on_run_end = on_end
        """The function that a run calls at its end."""
        self.control: RunLoop | None = None
        self.slots = 1
        self.suspects: dict[RunLoop, Execution | None] = {}
        """Loops without a pulse, with the run that each was at in the last look."""
        self.blocks: dict[RunLoop, Blocking] = {}
        """Loops that were at the same run in two looks."""
        self.free: dict[RunLoop, float] = {}
        """Loops that were stuck and replaced, with the time since when they go on."""
        self.threads: dict[Execution, Blocking] = {}
        """Runs that are over and keep their threads."""
        self.log_times: dict[str, float] = {}
        """The time when the log last named each agent."""
        self.since: float | None = None
        """The time since when the process is helpless."""
        self.has_given_up = False
        """True once it has ended the process because of that."""
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None

    def start(self, control: RunLoop, slots: int) -> None:
        """Start watching. The loop `control` has no agents: it writes the ends of runs on stuck loops. `slots` is the
        number of threads."""
        self.control, self.slots, self.since, self.has_given_up = control, slots, None, False
        self.stopping.clear()
        self.thread = threading.Thread(target=self._live, name="watchdog", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self.suspects, self.blocks, self.free, self.threads = {}, {}, {}, {}

    def _live(self) -> None:
        while not self.stopping.wait(LOOK):
            try:
                self.look()
            except Exception:
                log.exception("the watchdog could not look at everything; it looks again")

    def look(self) -> None:
        """Look once."""
        runs: defaultdict[RunLoop | None, list[Execution]] = defaultdict(list)
        for run in self.at_work():
            runs[run.place].append(run)
        for place in self.loops.all():
            if place.silence > LATE:
                self._suspect(place, runs[place])
            else:
                self._clear(place, runs[place])
            if runs[place]:
                place.ask()
        self._look_at_threads()
        self._look_for_help()

    # ------------------------------------------------------------------ loops

    def _suspect(self, place: RunLoop, runs: list[Execution]) -> None:
        """Act on a loop without a pulse that is at the same run in two looks. A slow loop would be at another."""
        run, thread = run_on(place.thread.ident), place.thread.ident
        if run is None or self.suspects.get(place) is not run:
            self.suspects[place] = run
            return
        blocking = self.blocks.get(place)
        if blocking is None or blocking.run is not run:
            blocking = self.blocks[place] = self._blocking(run, thread, time.monotonic() - place.silence)
            self._say(blocking, "blocks its event loop: other runs of this agent wait, other agents go on. " + ADVICE)
        self.loops.replace(place)
        fresh = self.loops.of(place.name)
        for waiting in runs:
            if fresh is not place and waiting.task is None:
                waiting.start(fresh, self.on_run_end)
        self._end_in_time(blocking)

    def _clear(self, place: RunLoop, runs: list[Execution]) -> None:
        self.suspects.pop(place, None)
        if (blocking := self.blocks.pop(place, None)) is not None:
            self.free[place] = time.monotonic()
            log.warning("%s no longer blocks its event loop", blocking.name)
        if runs or time.monotonic() - self.free.get(place, time.monotonic()) < REPEAT:
            return
        if self.free.pop(place, None) is not None:
            self.loops.forget(place)

    def _end_in_time(self, blocking: Blocking) -> None:
        """Fail the run at its timeout, because its own loop cannot."""
        run, control = blocking.run, self.control
        if control is None or run.ending or run.deadline is None or time.monotonic() < run.deadline + OVERDUE:
            return
        run.ending = True
        sentence = (
            f"The agent took longer than its timeout of {run.read.timeout:g} s, in a call that blocks its event loop."
        )
        stack = blocking.spot.stack if blocking.spot else ""
        asyncio.run_coroutine_threadsafe(run.overrun(sentence, stack), control.loop)

    # ---------------------------------------------------------------- threads

    def _look_at_threads(self) -> None:
        # The thread of an isolated run returns by itself, because its process is ended.
        hanging = [run for run in list(self.hanging) if not run.is_isolated]
        for run in hanging:
            if run not in self.threads:
                self.threads[run] = self._blocking(run, run.seat.ident, time.monotonic())
            elif self.threads[run].seconds > LATE:
                self._say(
                    self.threads[run],
                    "did not return at its end, and keeps a thread for sync agents." + WAY_OUT,
                )
        for run in self.threads.keys() - set(hanging):
            del self.threads[run]

    # ---------------------------------------------------------------- reports

    def _blocking(self, run: Execution, thread: int | None, since: float) -> Blocking:
        agent = registry.get(run.read.agent)
        return Blocking(run, since, spot_of(thread, agent.function if agent else None))

    def _say(self, blocking: Blocking, what: str) -> None:
        """Name the agent in the log, once a minute."""
        agent, now = blocking.run.read.agent, time.monotonic()
        if now - self.log_times.get(agent, -REPEAT) < REPEAT:
            return
        self.log_times[agent] = now
        log.warning("%s %s It is at %s", blocking.name, what, blocking.spot or "a line that cannot be found")

    def troubles(self) -> list[str]:
        """Return a sentence for each agent that hangs."""
        blocks = [
            f"runner: {item.name} has blocked its event loop for {item.seconds:.0f} s; its other runs wait"
            for item in list(self.blocks.values())
        ]
        keeps = [
            f"runner: {item.name} did not return at its end, and has kept a thread for {item.seconds:.0f} s since"
            for item in list(self.threads.values())
            if item.seconds > LATE
        ]
        return blocks + keeps

    # ---------------------------------------------------------------- helpless

    @property
    def helpless(self) -> str:
        """The reason why this process cannot do its work any more; empty if it can."""
        threads = [item for item in list(self.threads.values()) if item.seconds > HOPELESS]
        if len(threads) >= self.slots:
            what = f"no thread for sync agents is left, {len(threads)} of {self.slots} hang beyond their time"
            return f"runner: {what} ({_agents(threads)}); restart the process"
        loops = [item for item in list(self.blocks.values()) if item.seconds > HOPELESS]
        if len(loops) >= MAX_STUCK:
            return f"runner: {len(loops)} event loops are blocked ({_agents(loops)}); restart the process"
        return ""

    def _look_for_help(self) -> None:
        """End the process when it has been helpless for too long, with the grace of any end."""
        if not (sentence := self.helpless):
            self.since = None
            return
        if self.since is None:
            self.since = time.monotonic()
            log.error("%s", sentence)
        seconds = settings.A2A_HELPLESS_SECONDS
        if seconds and not self.has_given_up and time.monotonic() - self.since > seconds:
            self.has_given_up = True
            log.critical("this process ends so that it is started again: %s", sentence)
            os.kill(os.getpid(), signal.SIGTERM)


def _agents(hanging: Iterable[Blocking]) -> str:
    return ", ".join(sorted({item.run.read.agent for item in hanging}))
