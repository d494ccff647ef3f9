"""The slots of a process: what is claimed for them, and who is at work.

A run of an async agent lives on the loop of its agent, any other on the runner's own, with a thread of its own for the
agent. A thread cannot be stopped, so a slot is free when the thread has come back, however its run has ended.
"""

import asyncio
import logging
import os
import secrets
import socket
import threading
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

from django.conf import settings

from a2a.agents import Agent, registry
from a2a.states import QUIET
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.event_log import Claim, Demand, TaskRead, recover
from tasks_app.hints import ANY, Reached, hints
from tasks_app.runner.execution import Execution, start_together
from tasks_app.runner.heartbeat import Heartbeat
from tasks_app.runner.isolation import warm, warm_up
from tasks_app.runner.loops import Loops, RunLoop
from tasks_app.runner.slots import Turns, slots_of, spare_of
from tasks_app.runner.watchdog import Watchdog

log = logging.getLogger(__name__)
FAREWELL = 1.0
"""Seconds that runs have to end when they are stopped, and their leases to be given back."""


UNWRITTEN = 10_000
"""Runs that are remembered because their end could not be written; their leases run out."""


def _new_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"[:64]


class Runner:
    """The runs of this process."""

    def __init__(self) -> None:
        self.worker = _new_name()
        """Unlike any other's, also after a restart, and in a forked child."""
        self.running: dict[str, Execution] = {}
        self.former: set[Execution] = set()
        """Runs that lost their tasks to others of this process, and have not ended yet."""
        self.hanging: set[Execution] = set()
        """Runs that are over, and whose threads are still at work."""
        self.changed = threading.Condition()
        """Guards the three above, and tells of runs that end."""
        self.claiming = threading.Lock()
        self.doubtful = False
        """Whether the last claim ended without an answer, so that it may have taken tasks."""
        self.unwritten: deque[tuple[str, int]] = deque(maxlen=UNWRITTEN)
        """Tasks and fences whose end could not be written: theirs is no claim that was lost."""
        self.control: RunLoop | None = None
        """The loop on which no agent runs."""
        self.loops = Loops()
        self.threads = ThreadPoolExecutor(1)
        self.heartbeat = Heartbeat(self.worker, self.running)
        self.watchdog = Watchdog(self.loops, self.hanging, self._at_work, self._ended)
        self.stopping = False
        self.hungry = False
        """The last claim left tasks behind, because there were too few slots."""
        self.quiet = threading.Event()
        """Nothing runs."""
        self.turns = Turns()
        self.queues: frozenset[str] = ANY
        """Claims from these queues only; none of them: from all."""
        self.alone = False
        """One run at a time: the process was forked to have a core for it."""

    def start(self) -> None:
        """Starts the runner's own loop and the heartbeat; agents get theirs with their first runs."""
        if self.control is not None:
            return
        self.stopping = False
        # The tasks of a parent, or of other children, are none of this process's.
        self.worker = self.heartbeat.worker = _new_name()
        slots = slots_of(is_async=False)
        self.threads = ThreadPoolExecutor(slots + spare_of(slots), thread_name_prefix="agent")
        self.control = RunLoop("runner").start()
        self.heartbeat.start()
        self.watchdog.start(self.control, 1 if self.alone else slots + spare_of(slots))
        hints.listen(self._heard)
        if any(agent.isolation for agent in self._agents()):
            threading.Thread(target=warm_up, name="warm-up", daemon=True).start()

    def _agents(self) -> list[Agent]:
        """The agents of the queues of this process."""
        return [agent for agent in registry if not self.queues or agent.queue in self.queues]

    @property
    def alive(self) -> bool:
        """Whether the threads that keep the runs going are alive."""
        control, beating = self.control, self.heartbeat.thread
        return control is None or (control.thread.is_alive() and beating is not None and beating.is_alive())

    def troubles(self) -> list[str]:
        """Return a sentence if the process is beyond help, and one for each agent that hangs."""
        return [*filter(None, [self.helpless]), *self.watchdog.troubles()]

    @property
    def helpless(self) -> str:
        """The reason why this process cannot run agents any more; empty if it can."""
        return self.watchdog.helpless

    @property
    def exit_code(self) -> int:
        """The exit code of the process: 1 if it ended itself, for it was beyond help."""
        return int(self.watchdog.ended)

    # ---------------------------------------------------------------- claims

    def claim_all(self) -> int:
        """Claims and starts runnable tasks until there are none or the slots are full; how many it started."""
        total = 0
        with self.claiming:
            more = True
            while more and not self.stopping and self.control is not None:
                if self.doubtful:
                    total += self._begin(self._recovered(), self.control)
                claimed, more = self._claim()
                total += self._begin(claimed, self.control)
        return total

    def _begin(self, runs: Sequence[Execution], control: RunLoop) -> int:
        """Start the runs; return how many they are."""
        by_place: dict[RunLoop, list[Execution]] = {}
        for run in runs:
            by_place.setdefault(self.loops.of(run.read.agent) if run.is_async else control, []).append(run)
        for place, group in by_place.items():
            start_together(group, place, self._ended)
        return len(runs)

    def _claim(self) -> tuple[list[Execution], bool]:
        """The runs that it got, and whether there may be more for the free slots."""
        demands = self._demands()
        if not demands:
            return [], False
        self.doubtful = True
        claimed = bridge.do(Claim(worker=self.worker, demands=tuple(demands)))
        self.doubtful = False
        more = [self.turns.served(demand, claimed) for demand in demands]
        return self._runs_of(claimed), any(more)

    def _runs_of(self, reads: Sequence[TaskRead]) -> list[Execution]:
        """The runs of tasks that are this process's: counted at once, or the next claim would overfill the slots."""
        return [self._counted(Execution(read, self.worker, self.threads)) for read in reads]

    def _recovered(self) -> list[Execution]:
        """Runs of tasks that became this process's by a claim whose answer was lost with its connection."""
        # Those at work first: one that ends meanwhile is not taken for a task without a run.
        known = {(run.task_id, run.read.fence) for run in self._at_work()} | set(self.unwritten)
        reads = bridge.do(Do(partial(recover, self.worker, known)))
        self.doubtful = False
        if reads:
            log.info("%d tasks were claimed by a call that was not answered: they are begun now", len(reads))
        return self._runs_of(reads)

    def _counted(self, run: Execution) -> Execution:
        with self.changed:
            self.quiet.clear()
            former = self.running.get(run.task_id)
            if former is not None and former.place is not None and not (former.task and former.task.done()):
                # Its lease ended, and no heartbeat will speak of it: they are about the new run.
                self.former.add(former)
                former.lose()
            self.running[run.task_id] = run
        return run

    def _demands(self) -> list[Demand]:
        """The tasks of each kind that there are slots for; a process that is alone has one for both."""
        mine = [agent for agent in self._agents() if self._can_begin(agent)]
        # Before the slots are counted: one that is freed in the meantime offers, or nobody would.
        self.hungry, full = True, False
        if self.alone:
            kinds = [(mine, 1, 1 - len(self._at_work()), self._busy(None))]
        else:
            kinds = [
                ([a for a in mine if a.is_async is kind], slots_of(kind), self._free(kind), self._busy(kind))
                for kind in (True, False)
            ]
        demands = []
        for agents, slots, free, busy in kinds:
            full |= bool(agents) and free <= 0
            if demand := self.turns.demand(agents, slots, free, busy):
                demands.append(demand)
        if not full:
            self.hungry = False
        return demands

    def _can_begin(self, agent: Agent) -> bool:
        return warm.is_set() if agent.isolation else not self.loops.is_shut(agent.name)

    def _free(self, is_async: bool) -> int:
        return slots_of(is_async) - sum(run.is_async is is_async for run in self._at_work())

    def _busy(self, is_async: bool | None) -> Counter[int]:
        """How many runs of a kind, or of both, each owner has."""
        return Counter(run.read.owner_id for run in self._at_work() if is_async in (run.is_async, None))

    def _at_work(self) -> list[Execution]:
        """Everything that takes a slot; on any thread."""
        with self.changed:
            return [*self.running.values(), *self.former, *self.hanging]

    def _ended(self, run: Execution) -> None:
        """On the loop of the run."""
        with self.changed:
            if self.running.get(run.task_id) is run:
                del self.running[run.task_id]
            self.former.discard(run)
            if run.is_unwritten:
                self.unwritten.append((run.task_id, run.read.fence))
            if (work := run.seat.work) is not None and run.seat.is_busy:
                self.hanging.add(run)
                work.add_done_callback(lambda _: self._left(run))
            self.changed.notify_all()
        self._freed(run)

    def _left(self, run: Execution) -> None:
        """The thread of a run that was over has come back."""
        with self.changed:
            self.hanging.discard(run)
            self.changed.notify_all()
        self._freed(run)

    def _freed(self, run: Execution) -> None:
        with self.changed:
            if not (self.running or self.former or self.hanging):
                self.quiet.set()
        agent = registry.get(run.read.agent)
        if (self.hungry or (agent and agent.concurrency)) and not self.stopping:
            self.hungry = False
            hints.offer()

    # ---------------------------------------------------------------- leases

    def renew(self) -> None:
        """From any thread: a beat out of turn if one is late."""
        if self.control is not None:
            self.heartbeat.beat_if_late()

    def _heard(self, news: list[Reached]) -> None:
        """On the thread that committed."""
        mine = [item for item in news if item.task_id in self.running and (item.message or item.state in QUIET)]
        if mine and self.control is not None:
            self.control.call(self._act, mine)

    def _act(self, news: list[Reached]) -> None:
        for item in news:
            run = self.running.get(item.task_id)
            if run is None or run.finishing:
                continue
            if item.state in QUIET:
                asyncio.get_running_loop().create_task(self.heartbeat.check(run))
            else:
                run.look()

    # -------------------------------------------------------------- shutdown

    def close(self) -> None:
        """No more claims; what runs goes on. Safe in a signal handler."""
        self.stopping = True

    def stop(self) -> None:
        """No more claims; runs get a grace, then those that may be tried again are given back, and the others fail."""
        control, self.stopping = self.control, True
        if control is None:
            return
        hints.forget(self._heard)
        # Who is claiming puts all claims into `running` first, unless the database hangs.
        if self.claiming.acquire(timeout=settings.A2A_GRACE_SECONDS):
            self.claiming.release()
        self._wind_down(control)
        with self.changed:
            self.changed.wait_for(lambda: not any(run.is_isolated for run in self.hanging), settings.A2A_KILL_SECONDS)
        self.heartbeat.stop()
        self.watchdog.stop()
        self.control = None
        self.loops.stop()
        control.stop()
        self.threads.shutdown(wait=False, cancel_futures=True)

    def _wind_down(self, control: RunLoop) -> None:
        if not self._ends_within(0):
            log.info("%d runs have %g s to end", len(self.running), settings.A2A_GRACE_SECONDS)
        if self._ends_within(settings.A2A_GRACE_SECONDS):
            return
        for run in list(self.running.values()):
            run.release()
        if self._ends_within(FAREWELL):
            return
        # Their loops are blocked; what they write later is refused.
        left = [asyncio.run_coroutine_threadsafe(run.give_back(), control.loop) for run in self.running.values()]
        _, late = wait(left, timeout=FAREWELL)
        if late:
            log.warning("%d runs could not be given back in time; their leases run out", len(late))

    def _ends_within(self, seconds: float) -> bool:
        """Whether all runs end in that time, leaving aside threads that do not."""
        with self.changed:
            return self.changed.wait_for(lambda: not self.running and not self.former, seconds)


runner = Runner()
"""The runner of this process."""
