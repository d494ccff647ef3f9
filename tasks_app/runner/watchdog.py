"""Finds agents that block or end an event loop, or keep a slot beyond their time, and names them to operators. If an
agent blocks its loop or ignores its cancellation, this fails its run at its timeout. It ends helpless processes."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from types import FrameType

from django.conf import settings
from msgspec import Struct

from a2a.agents import registry
from tasks_app.runner.execution import Execution
from tasks_app.runner.loops import LATE, MAX_STUCK, Loops, RunLoop
from tasks_app.runner.stacks import Spot, frames_of, run_on, spot_of, waiting_frames
from tasks_app.runner.starts import start_together

log = logging.getLogger(__name__)
LOOK = 0.25
"""Seconds between two looks."""
OVERDUE = 0.5
"""Seconds after its timeout, or its cancellation, in which a run may end by itself."""
AGAIN = 3.0
"""Seconds between two cancellations of an agent that ignores them."""
REPEAT = 60.0
"""Seconds after which the log names the same agent again."""
HOPELESS = 5.0
"""Seconds after which a loop or an agent that hangs is not expected back."""
ADVICE = 'Call it through asyncio.to_thread, define the agent without async, or give it isolation="process".'
WAY_OUT = {
    True: " Let asyncio.CancelledError end it.",
    False: ' Give its calls time limits of their own, or the agent isolation="process".',
}
SLOT_NAMES = {True: "slot for async agents", False: "thread for sync agents"}
"""The names of the two kinds of slots, by whether their agents are async."""
OnEnd = Callable[[Execution], None]


class Blocking(Struct):
    """A run that blocks a loop or keeps a slot, with its place in the code."""

    run: Execution
    since: float
    spot: Spot | None
    cancellations: int = 0
    """The number of times that it was cancelled after its end."""

    @property
    def name(self) -> str:
        where = f" at {self.spot.short}" if self.spot else ""
        return f"agent {self.run.read.agent}{where} (task {self.run.task_id})"

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since


class Watchdog:
    """A thread that looks at the loops and runs of the runner."""

    def __init__(
        self,
        loops: Loops,
        hanging: Collection[Execution],
        at_work: Callable[[], list[Execution]],
        on_end: OnEnd,
        leave: OnEnd,
    ) -> None:
        self.loops = loops
        self.hanging = hanging
        """The runner's set of runs that are over, and whose agents are still at work."""
        self.at_work = at_work
        self.on_run_end = on_end
        """The function that a run calls at its end."""
        self.leave = leave
        """The function that moves a run to `hanging`."""
        self.control: RunLoop | None = None
        self.slots: Mapping[bool, int] = {}
        self.suspects: dict[RunLoop, Execution | None] = {}
        """Loops without a pulse, with the run that each was at in the last look."""
        self.blocks: dict[RunLoop, Blocking] = {}
        """Loops that were at the same run in two looks."""
        self.free: dict[RunLoop, float] = {}
        """Loops that were stuck and replaced, with the time since when they go on."""
        self.deaths: dict[str, float] = {}
        """The time when the loop of each agent last ended, by the agent's name."""
        self.stranded: set[Execution] = set()
        """Runs that are being ended because their loop has."""
        self.overdue: set[Execution] = set()
        """Runs that were overdue in the last look."""
        self.holders: dict[Execution, Blocking] = {}
        """Runs that are over and still hold their slots."""
        self.log_times: dict[str, float] = {}
        """The time when the log last named each agent."""
        self.since: float | None = None
        """The time since when the process is helpless."""
        self.has_given_up = False
        """True once it has ended the process because of that."""
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None

    def start(self, control: RunLoop, slots: Mapping[bool, int]) -> None:
        """Start watching. The loop `control` has no agents: it writes the ends of runs whose agents do not end. `slots`
        is the number of slots for async agents (True) and of threads for all others (False)."""
        self.control, self.slots, self.since, self.has_given_up = control, slots, None, False
        self.stopping.clear()
        self.thread = threading.Thread(target=self._live, name="watchdog", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self.suspects, self.blocks, self.free, self.overdue, self.holders = {}, {}, {}, set(), {}
        self.deaths, self.stranded = {}, set()

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
        self._look_for_deaths(runs)
        for place in self.loops.all():
            if place.silence > LATE:
                self._suspect(place, runs[place])
            else:
                self._clear(place, runs[place])
            if runs[place]:
                place.ask()
        self._look_at_overdue(runs)
        self._look_at_holders()
        self._look_for_help()

    # ------------------------------------------------------------------ loops

    def _suspect(self, place: RunLoop, runs: list[Execution]) -> None:
        """Act on a loop without a pulse that is at the same run in two looks. A slow loop would be at another."""
        frames = frames_of(place.thread.ident)
        run = run_on(frames)
        if run is None or self.suspects.get(place) is not run:
            self.suspects[place] = run
            return
        blocking = self.blocks.get(place)
        if blocking is None or blocking.run is not run:
            blocking = self.blocks[place] = self._blocking(run, frames, time.monotonic() - place.silence)
            self._say(blocking, "blocks its event loop: other runs of this agent wait, other agents go on. " + ADVICE)
        self.loops.replace(place)
        fresh = self.loops.of(place.name)
        for waiting in runs:
            if fresh is not place and waiting.task is None:
                start_together([waiting], fresh, self.on_run_end)

    def _clear(self, place: RunLoop, runs: list[Execution]) -> None:
        self.suspects.pop(place, None)
        if (blocking := self.blocks.pop(place, None)) is not None:
            self.free[place] = time.monotonic()
            log.warning("%s no longer blocks its event loop", blocking.name)
        if runs or time.monotonic() - self.free.get(place, time.monotonic()) < REPEAT:
            return
        if self.free.pop(place, None) is not None:
            self.loops.forget(place)

    def _look_for_deaths(self, runs: Mapping[RunLoop | None, list[Execution]]) -> None:
        """Forget loops whose threads have ended. Their runs are lost, and those that had not begun get another loop."""
        self.stranded.intersection_update(chain.from_iterable(runs.values()))
        for place in {*self.loops.all(), *filter(None, runs)} - {self.control}:
            if not place.is_dead:
                continue
            self.loops.discard(place)
            self.deaths[place.name] = time.monotonic()
            for table in (self.suspects, self.blocks, self.free):
                table.pop(place, None)
            for run in runs.get(place, []):
                if run.task is None:
                    start_together([run], self.loops.of(place.name), self.on_run_end)
                elif run not in self.stranded:
                    self._end_with_loop(run)

    def _end_with_loop(self, run: Execution) -> None:
        if self.control is None:
            return
        self.stranded.add(run)
        future = asyncio.run_coroutine_threadsafe(run.end_with_loop(), self.control.loop)
        future.add_done_callback(lambda _: self.on_run_end(run))

    # ---------------------------------------------------------------- overdue

    def _look_at_overdue(self, runs: Mapping[RunLoop | None, list[Execution]]) -> None:
        """End runs that are overdue in two looks. A loop that goes on after a long call ends such runs by itself."""
        overdue = {run for place, group in runs.items() for run in group if self._is_overdue(run, place)}
        for run in overdue & self.overdue:
            self._end_outside(run)
        self.overdue = overdue

    def _is_overdue(self, run: Execution, place: RunLoop | None) -> bool:
        """Return whether the run must be ended from outside. Runs that only wait for a stuck loop need not be."""
        waits = place is not None and place.silence > LATE and self._block_of(run) is None
        return not waits and not run.ending and run.is_overdue(OVERDUE)

    def _block_of(self, run: Execution) -> Blocking | None:
        """Return the block of a loop by the run, if it blocks one."""
        blocking = self.blocks.get(run.place) if run.place else None
        return blocking if blocking is not None and blocking.run is run else None

    def _end_outside(self, run: Execution) -> None:
        """Write the end of the run from outside, and leave its agent behind."""
        if self.control is None:
            return
        run.ending = True
        blocking = self._block_of(run)
        spot = blocking.spot if blocking else self._spot(run, _frames_of_run(run))
        how = ", in a call that blocks its event loop" if blocking else ""
        future = asyncio.run_coroutine_threadsafe(run.overrun(how, spot.stack if spot else ""), self.control.loop)
        future.add_done_callback(lambda _: self.leave(run))

    # ---------------------------------------------------------------- holders

    def _look_at_holders(self) -> None:
        # The thread of an isolated run returns by itself, because its process is ended.
        hanging = [run for run in list(self.hanging) if not run.is_isolated and self._block_of(run) is None]
        for run in hanging:
            if run not in self.holders:
                self.holders[run] = self._blocking(run, _frames_of_run(run), time.monotonic())
            elif (item := self.holders[run]).seconds > LATE:
                self._say(
                    item, f"did not return at its end, and keeps a {SLOT_NAMES[run.is_async]}.{WAY_OUT[run.is_async]}"
                )
                if item.seconds > AGAIN * (item.cancellations + 1):
                    item.cancellations += 1
                    run.cancel()
        for run in self.holders.keys() - set(hanging):
            del self.holders[run]

    # ---------------------------------------------------------------- reports

    def _blocking(self, run: Execution, frames: Sequence[FrameType], since: float) -> Blocking:
        return Blocking(run, since, self._spot(run, frames))

    def _spot(self, run: Execution, frames: Sequence[FrameType]) -> Spot | None:
        agent = registry.get(run.read.agent)
        return spot_of(frames, agent.function if agent else None)

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
        holders = [
            f"runner: {item.name} did not return at its end, and has kept a {SLOT_NAMES[item.run.is_async]} "
            f"for {item.seconds:.0f} s since"
            for item in list(self.holders.values())
            if item.seconds > LATE
        ]
        deaths = [
            f"runner: the event loop of agent {name} ended {seconds:.0f} s ago; its runs are lost, new ones get another"
            for name, since in list(self.deaths.items())
            if (seconds := time.monotonic() - since) < REPEAT
        ]
        return blocks + holders + deaths

    # ---------------------------------------------------------------- helpless

    @property
    def helpless(self) -> str:
        """The reason why this process cannot do its work any more; empty if it can."""
        hopeless = [item for item in list(self.holders.values()) if item.seconds > HOPELESS]
        for is_async, slots in self.slots.items():
            holders = [item for item in hopeless if item.run.is_async is is_async]
            if len(holders) >= slots:
                what = f"no {SLOT_NAMES[is_async]} is left, {len(holders)} of {slots} hang beyond their time"
                return f"runner: {what} ({_agents(holders)}); restart the process"
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


def _frames_of_run(run: Execution) -> list[FrameType]:
    """Return the frames of the run's agent, innermost first."""
    if run.is_async:
        return waiting_frames(run.task.get_coro()) if run.task else []
    return frames_of(run.seat.ident)


def _agents(hanging: Iterable[Blocking]) -> str:
    return ", ".join(sorted({item.run.read.agent for item in hanging}))
