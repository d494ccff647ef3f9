"""The slots of a process: claims for free slots, and the runs that take slots.

A run of an async agent lives on the loop of its agent, any other on the runner's own, with a thread of its own for the
agent. No agent can be stopped against its will, so a slot becomes free when the agent returns, however its run ended.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from time import monotonic

from django.conf import settings

from a2a.agents import Agent, registry
from a2a.states import QUIET
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.event_log import Claim, Demand, TaskRead, recover
from tasks_app.hints import ANY, Reached, hints
from tasks_app.runner.execution import Execution
from tasks_app.runner.exits import fail_culprit
from tasks_app.runner.fork_server import unable, warm, warm_up
from tasks_app.runner.heartbeat import Heartbeat
from tasks_app.runner.loops import Loops, RunLoop
from tasks_app.runner.slots import Turns, slots_of, spare_of
from tasks_app.runner.starts import start_together
from tasks_app.runner.watchdog import Watchdog

log = logging.getLogger(__name__)
RELEASE_SECONDS = 1.0
"""Seconds for runs that were stopped to end, and for their tasks to be released."""
MAX_UNWRITTEN = 10_000
"""Runs without a written end that are remembered until their leases run out, at most."""


def _new_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"[:64]


class Runner:
    """The runs of this process."""

    def __init__(self) -> None:
        self.worker = _new_name()
        """The name of this process as the owner of leases. It is new after a restart, and in a forked child."""
        self.running: dict[str, Execution] = {}
        self.predecessors: set[Execution] = set()
        """Runs that are still stopping after another run of this process claimed their task."""
        self.hanging: set[Execution] = set()
        """Runs that are over, and whose agents are still at work."""
        self.change = threading.Condition()
        """Guards the three above. It is notified when a run ends."""
        self.claiming = threading.Lock()
        self.is_claim_doubtful = False
        """True if the last claim ended without a result, so that it may have claimed tasks."""
        self.without_end: deque[tuple[str, int]] = deque(maxlen=MAX_UNWRITTEN)
        """Tasks and fences of runs whose end could not be written. No lost claim accounts for their leases."""
        self.control: RunLoop | None = None
        """The loop on which no agent runs."""
        self.loops = Loops(fail_culprit)
        self.threads = ThreadPoolExecutor(1)
        self.heartbeat = Heartbeat(self.worker, self.running)
        self.watchdog = Watchdog(self.loops, self.hanging, self._at_work, self._on_end, self._leave)
        self.stopping = False
        self.hungry = False
        """True if the last claim had too few slots, so that the next slot that becomes free must have more claimed."""
        self.quiet = threading.Event()
        """Set while there are no runs."""
        self.turns = Turns()
        self.queues: frozenset[str] = ANY
        """The queues from which the process claims; all queues if empty."""
        self.alone = False
        """True for one run at a time, in a process that was forked to give it a core."""

    def start(self) -> None:
        """Start the runner's own loop and the heartbeat. The loop of an agent starts with its first run."""
        if self.control is not None:
            return
        self.stopping = False
        # The leases of a parent, or of other children, must not count as leases of this process.
        self.worker = self.heartbeat.worker = _new_name()
        slots = {kind: slots_of(kind) + spare_of(slots_of(kind)) for kind in (True, False)}
        self.threads = ThreadPoolExecutor(slots[False], thread_name_prefix="agent")
        self.control = RunLoop("runner").start()
        self.heartbeat.start()
        self.watchdog.start(self.control, dict.fromkeys(slots, 1) if self.alone else slots)
        hints.listen(self._receive)
        self.take_in_agents()

    def take_in_agents(self) -> None:
        """Prepare for agents that are new. Call it after a change of the registry."""
        if self.control is not None and not warm.is_set() and any(agent.isolation for agent in self._agents()):
            threading.Thread(target=warm_up, name="warm-up", daemon=True).start()

    def leave_agents(self) -> None:
        """End the loops of agents that are gone and have no runs, unless a claim is under way, which may begin some."""
        if self.claiming.acquire(blocking=False):
            try:
                present = {agent.name for agent in registry if agent.is_async}
                self.loops.keep(present | {run.read.agent for run in self._at_work()})
            finally:
                self.claiming.release()

    def _agents(self) -> list[Agent]:
        """Return the agents of the queues of this process."""
        return [agent for agent in registry if not self.queues or agent.queue in self.queues]

    @property
    def alive(self) -> bool:
        """True while the threads that keep the runs going are alive."""
        control, heartbeat = self.control, self.heartbeat.thread
        return control is None or (control.thread.is_alive() and heartbeat is not None and heartbeat.is_alive())

    @property
    def death(self) -> str:
        """The sentence about a thread that has ended and that the runs need; empty if all are alive."""
        return "" if self.alive else "runner: its loop or its heartbeat has ended; restart the process"

    def troubles(self) -> list[str]:
        """Return a sentence if the process is helpless or cannot start others, and one for each agent that hangs."""
        starts = ["runner: no process for isolated agents can be started, see the log"] if unable.is_set() else []
        return [*filter(None, [self.death, self.helpless]), *self.watchdog.troubles(), *starts]

    @property
    def helpless(self) -> str:
        """The reason why this process cannot run agents any more; empty if it can."""
        return self.watchdog.helpless

    @property
    def exit_code(self) -> int:
        """The exit code of the process: 1 if it ended itself because it was helpless."""
        return int(self.watchdog.has_given_up)

    # ---------------------------------------------------------------- claims

    def claim_all(self) -> int:
        """Claim and begin runnable tasks until there are none or the slots are full; return how many were begun."""
        total = 0
        with self.claiming:
            more = True
            while more and not self.stopping and self.control is not None:
                if self.is_claim_doubtful:
                    total += self._begin(self._recover(), self.control)
                runs, more = self._claim()
                total += self._begin(runs, self.control)
        return total

    def _begin(self, runs: Sequence[Execution], control: RunLoop) -> int:
        """Begin the runs; return how many they are."""
        by_place: dict[RunLoop, list[Execution]] = {}
        for run in runs:
            by_place.setdefault(self.loops.of(run.read.agent) if run.is_async else control, []).append(run)
        for place, group in by_place.items():
            start_together(group, place, self._on_end)
        return len(runs)

    def _claim(self) -> tuple[list[Execution], bool]:
        """Claim once; return the runs, and whether there may be more tasks for the free slots."""
        # A run gets the agent that its task was claimed for, whatever the registry has by then.
        agents = {agent.name: agent for agent in self._agents()}
        demands = self._demands()
        if not demands:
            return [], False
        self.is_claim_doubtful = True
        reads = bridge.do(Claim(worker=self.worker, demands=tuple(demands)))
        self.is_claim_doubtful = False
        more = [self.turns.note(demand, reads) for demand in demands]
        return self._runs_of(reads, agents), any(more)

    def _runs_of(self, reads: Sequence[TaskRead], agents: Mapping[str, Agent]) -> list[Execution]:
        """Return runs for claimed tasks. They take slots at once, or the next claim would overfill the slots."""
        pairs = [(read, agents.get(read.agent) or registry.get(read.agent)) for read in reads]
        return [self._add(Execution(read, agent, self.worker, self.threads)) for read, agent in pairs]

    def _recover(self) -> list[Execution]:
        """Return runs for tasks of a claim whose result was lost with its connection."""
        # The runs at work are read before the leases, or a run that ends in between would pass for a lost claim.
        pairs = {(run.task_id, run.read.fence) for run in self._at_work()} | set(self.without_end)
        reads = bridge.do(Do(partial(recover, self.worker, pairs)))
        self.is_claim_doubtful = False
        if reads:
            log.info("%d tasks of a claim without a result are begun now", len(reads))
        return self._runs_of(reads, {})

    def _add(self, run: Execution) -> Execution:
        with self.change:
            self.quiet.clear()
            other = self.running.get(run.task_id)
            if other is not None and other.place is not None and not (other.task and other.task.done()):
                # The lease of the other run has ended. Heartbeats ask about the new run, so none will stop the other.
                self.predecessors.add(other)
                other.lose()
            self.running[run.task_id] = run
        return run

    def _demands(self) -> list[Demand]:
        """Return the demand for each kind of agents; a process with `alone` has one demand for both kinds."""
        own = [agent for agent in self._agents() if self._can_begin(agent)]
        # Set before the slots are counted, or a slot that becomes free in between would cause no claim.
        self.hungry, full = True, False
        if self.alone:
            kinds = [(own, 1, 1 - len(self._at_work()), self._busy(None))]
        else:
            kinds = [
                ([a for a in own if a.is_async is kind], slots_of(kind), self._free(kind), self._busy(kind))
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
        """Return how many runs of a kind, or of both, each owner has."""
        return Counter(run.read.owner_id for run in self._at_work() if is_async in (run.is_async, None))

    def _at_work(self) -> list[Execution]:
        """Return all runs that take a slot. Any thread may call it."""
        with self.change:
            return [*self.running.values(), *self.predecessors, *self.hanging]

    def _on_end(self, run: Execution) -> None:
        """Remove a run at its end. Called on its loop."""
        with self.change:
            if self.running.get(run.task_id) is run:
                del self.running[run.task_id]
            self.predecessors.discard(run)
            self.hanging.discard(run)
            if run.is_unwritten:
                self.without_end.append((run.task_id, run.read.fence))
            if (work := run.seat.work) is not None and run.seat.is_busy:
                self.hanging.add(run)
                work.add_done_callback(lambda _: self._on_return(run))
            self.change.notify_all()
        self._free_slot(run)

    def _leave(self, run: Execution) -> None:
        """Set a run aside that is over, but whose agent goes on. It keeps its slot until its agent ends."""
        with self.change:
            if run.task is None or run.task.done() or run.finishing:
                return
            if self.running.get(run.task_id) is run:
                del self.running[run.task_id]
            self.predecessors.discard(run)
            self.hanging.add(run)
            self.change.notify_all()

    def _on_return(self, run: Execution) -> None:
        """Remove a run that had ended before its thread returned. Called when the thread has returned."""
        with self.change:
            self.hanging.discard(run)
            self.change.notify_all()
        self._free_slot(run)

    def _free_slot(self, run: Execution) -> None:
        with self.change:
            if not (self.running or self.predecessors or self.hanging):
                self.quiet.set()
        agent = registry.get(run.read.agent)
        if (self.hungry or (agent and agent.concurrency)) and not self.stopping:
            self.hungry = False
            hints.offer()

    # ---------------------------------------------------------------- leases

    def renew(self) -> None:
        """Have the heartbeat beat at once if it is late, and try again to start isolated agents if that has failed.

        Any thread may call it.
        """
        if self.control is not None:
            self.heartbeat.beat_if_late()
            with contextlib.suppress(RuntimeError):  # There is no room for a thread.
                self.take_in_agents()

    def _receive(self, news: list[Reached]) -> None:
        """Take in news, on the thread that committed."""
        own = [item for item in news if item.task_id in self.running and (item.message or item.state in QUIET)]
        if own and self.control is not None:
            self.control.call(self._act, own)

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
        """Stop claiming. Runs go on. Safe in a signal handler."""
        self.stopping = True

    def stop(self) -> None:
        """Stop claiming and give the runs a grace. Then tasks with attempts left are released, and the others fail."""
        control, self.stopping = self.control, True
        if control is None:
            return
        hints.forget(self._receive)
        ends = monotonic() + settings.A2A_GRACE_SECONDS
        # A thread that is claiming puts its runs into `running` first, unless the database hangs.
        if self.claiming.acquire(timeout=settings.A2A_GRACE_SECONDS):
            self.claiming.release()
        self._wind_down(control, ends - monotonic())
        with self.change:
            self.change.wait_for(lambda: not any(run.is_isolated for run in self.hanging), settings.A2A_KILL_SECONDS)
        self.heartbeat.stop()
        self.watchdog.stop()
        self.control = None
        self.loops.stop()
        with self.change:
            self.hanging.difference_update([run for run in self.hanging if run.is_async])  # their loops have ended
        control.stop()
        self.threads.shutdown(wait=False, cancel_futures=True)

    def _wind_down(self, control: RunLoop, seconds: float) -> None:
        if not self._ends_within(0):
            count = len(self.running)
            log.info("%d %s %.3g s to end", count, "run has" if count == 1 else "runs have", seconds)
        if self._ends_within(seconds):
            return
        for run in list(self.running.values()):
            run.release()
        if self._ends_within(RELEASE_SECONDS):
            return
        # The loops of these runs are blocked. Their later writes are refused.
        futures = [asyncio.run_coroutine_threadsafe(run.give_back(), control.loop) for run in self.running.values()]
        _, late = wait(futures, timeout=RELEASE_SECONDS)
        if late:
            log.warning("%d tasks could not be released in time; their leases run out", len(late))

    def _ends_within(self, seconds: float) -> bool:
        """Return whether all runs end within the seconds. Threads that hang do not count."""
        with self.change:
            return self.change.wait_for(lambda: not self.running and not self.predecessors, seconds)


runner = Runner()
"""The runner of this process."""
