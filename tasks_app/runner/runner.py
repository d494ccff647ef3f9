"""The slots of a process, its leases and their heartbeat."""

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from django.conf import settings

from a2a.agents import registry
from a2a.states import TERMINAL
from tasks_app import clock
from tasks_app.bridge import bridge
from tasks_app.event_log import Claim, Renew, TaskRead, Want
from tasks_app.hints import ANY, Reached, hints
from tasks_app.runner.execution import Execution

log = logging.getLogger(__name__)
BATCH = 64
"""Tasks claimed at once."""
LATE_SECONDS = 2.0
"""How long is waited for a beat out of turn."""


class Runner:
    """The runs of this process."""

    def __init__(self) -> None:
        self.worker = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"[:64]
        """Unlike any other's, also after a restart."""
        self.running: dict[str, Execution] = {}
        self.former: set[Execution] = set()
        """Runs that lost their tasks to others of this process, and have not ended yet."""
        self.claiming = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.threads = ThreadPoolExecutor(1)
        self.thread: threading.Thread | None = None
        self.stopping = False
        self.hungry = False
        """The last claim left tasks behind, for want of slots."""
        self.quiet = threading.Event()
        """Nothing runs."""
        self.queues: frozenset[str] = ANY
        """Claims from these queues only; none of them: from all."""
        self.alone = False
        """One run at a time: the process was forked to have a core for it."""
        self.renewed = clock.now()
        """When the last beat began."""

    def start(self) -> None:
        """Starts the loop and the heartbeat."""
        if self.loop is not None:
            return
        self.stopping, self.renewed = False, clock.now()
        self.threads = ThreadPoolExecutor(settings.A2A_SYNC_SLOTS, thread_name_prefix="agent")
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._live, args=(self.loop,), name="runner", daemon=True)
        self.thread.start()
        hints.listen(self._heard)

    def _live(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        beat = loop.create_task(self._beat())
        loop.run_forever()
        beat.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(beat)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    @property
    def alive(self) -> bool:
        """The loop on which agents run has not ended by itself."""
        return self.loop is None or self.thread is None or self.thread.is_alive()

    # ---------------------------------------------------------------- claims

    def claim_all(self) -> int:
        """Claims and starts runnable tasks until there are none or the slots are full; how many it started."""
        total = 0
        with self.claiming:
            more = True
            while more and not self.stopping and self.loop is not None:
                claimed, more = self._claim()
                total += len(claimed)
                if claimed:
                    self.loop.call_soon_threadsafe(self._start_all, claimed)
        return total

    def _claim(self) -> tuple[list[Execution], bool]:
        """The runs that it got, and whether there may be more for the free slots."""
        wants = self._wants()
        if not wants:
            return [], False
        claimed: list[TaskRead] = bridge.do(Claim(worker=self.worker, wants=tuple(wants)))
        # Counted at once, or the next claim would overfill the slots.
        runs = [self._counted(Execution(read, self.worker, self.threads)) for read in claimed]
        return runs, any(sum(read.agent in want.agents for read in claimed) >= want.limit for want in wants)

    def _counted(self, run: Execution) -> Execution:
        self.quiet.clear()
        if (former := self.running.get(run.task_id)) and self.loop:
            self.loop.call_soon_threadsafe(self._replaced, former)
        self.running[run.task_id] = run
        return run

    def _replaced(self, run: Execution) -> None:
        """Its lease ended, and no heartbeat will speak of it: they are about the new run."""
        if run.task is not None and not run.task.done():
            self.former.add(run)
            run.lose()

    def _wants(self) -> list[Want]:
        """The tasks of each kind that there are slots for; a process that is alone has one for both."""
        mine = [agent for agent in registry if not self.queues or agent.queue in self.queues]
        # Before the slots are counted: one that is freed in the meantime offers, or nobody would.
        self.hungry, full = True, False
        if self.alone:
            kinds = [(mine, 1 - len(self._at_work()))]
        else:
            kinds = [([a for a in mine if a.is_async is is_async], self._free(is_async)) for is_async in (True, False)]
        wants = []
        for agents, free in kinds:
            if agents and free > 0:
                names, queues = tuple(agent.name for agent in agents), tuple({agent.queue for agent in agents})
                wants.append(Want(agents=names, queues=queues, limit=min(free, BATCH)))
            elif agents:
                full = True
        if not full:
            self.hungry = False
        return wants

    def _free(self, is_async: bool) -> int:
        slots = settings.A2A_ASYNC_SLOTS if is_async else settings.A2A_SYNC_SLOTS
        return slots - sum(run.is_async is is_async for run in self._at_work())

    def _at_work(self) -> list[Execution]:
        """Everything that takes a slot; on any thread."""
        return [*list(self.running.values()), *list(self.former)]

    def _start_all(self, claimed: list[Execution]) -> None:
        for run in claimed:
            run.start(self._ended)

    def _ended(self, run: Execution) -> None:
        if self.running.get(run.task_id) is run:
            del self.running[run.task_id]
        self.former.discard(run)
        if not self._at_work():
            self.quiet.set()
        if self.hungry and not self.stopping:
            self.hungry = False
            hints.offer()

    # ---------------------------------------------------------------- leases

    async def _beat(self) -> None:
        """Renews all leases with one statement; a run that lost its own is stopped."""
        while True:
            await asyncio.sleep(settings.A2A_LEASE_SECONDS / 3)
            await self._renew()

    async def _renew(self) -> None:
        now = clock.now()
        held = self.running.copy()  # in one step: claims are made on another thread
        try:
            attempts = tuple((task_id, run.read.attempt) for task_id, run in held.items())
            kept = await bridge.ask(Renew(worker=self.worker, held=attempts)) if held else set()
        except Exception:
            log.exception("%d leases could not be renewed; trying again", len(held))
            return
        self.renewed = now
        for task_id, run in held.items():
            if self.running.get(task_id) is not run:
                continue
            if task_id in kept:
                # Messages that came about in another process, or whose hint was lost.
                run.look()
            else:
                run.lose()

    def renew(self) -> None:
        """From any thread: a beat out of turn when one is late, as after the machine has slept or its clock was set. A
        loop that hangs does not keep its leases by this."""
        late = clock.now() - self.renewed > timedelta(seconds=settings.A2A_LEASE_SECONDS / 2)
        if not late or not self.running or (loop := self.loop) is None:
            return
        beat = asyncio.run_coroutine_threadsafe(self._renew(), loop)
        try:
            beat.result(LATE_SECONDS)
        except (TimeoutError, CancelledError):
            beat.cancel()

    def _heard(self, news: list[Reached]) -> None:
        """On the thread that committed."""
        mine = [item for item in news if item.task_id in self.running and (item.message or item.state in TERMINAL)]
        if mine and self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._act, mine)

    def _act(self, news: list[Reached]) -> None:
        for item in news:
            run = self.running.get(item.task_id)
            if run is None or run.finishing:
                continue
            if item.state in TERMINAL:
                asyncio.get_running_loop().create_task(self._ask_whether_mine(run))
            else:
                run.look()

    async def _ask_whether_mine(self, run: Execution) -> None:
        """A hint says that the task has ended; only the row knows."""
        try:
            kept = await bridge.ask(Renew(worker=self.worker, held=((run.task_id, run.read.attempt),)))
        except Exception:
            log.exception("task %s: whether it has ended is not known; the heartbeat asks again", run.task_id)
            return
        if run.task_id not in kept:
            run.lose()

    # -------------------------------------------------------------- shutdown

    def close(self) -> None:
        """No more claims; what runs goes on. Safe in a signal handler."""
        self.stopping = True

    def stop(self) -> None:
        """No more claims; runs get a grace, then those that may be tried again are given back, and the others fail."""
        loop, self.stopping = self.loop, True
        if loop is None:
            return
        hints.forget(self._heard)
        with self.claiming:
            pass  # Who is claiming has put all claims into `running`.
        done = asyncio.run_coroutine_threadsafe(self._wind_down(), loop)
        try:
            done.result(settings.A2A_GRACE_SECONDS + 5)
        except TimeoutError:
            log.warning("%d runs did not end in time; their leases run out", len(self.running))
        loop.call_soon_threadsafe(loop.stop)
        self.loop = None
        self.threads.shutdown(wait=False, cancel_futures=True)

    async def _wind_down(self) -> None:
        tasks: list[asyncio.Task[Any]] = [run.task for run in self._at_work() if run.task]
        if not tasks:
            return
        log.info("%d runs have %g s to end", len(tasks), settings.A2A_GRACE_SECONDS)
        _, left = await asyncio.wait(tasks, timeout=settings.A2A_GRACE_SECONDS)
        for run in list(self.running.values()):
            run.release()
        if left:
            await asyncio.wait(left, timeout=1)
        for run in list(self.running.values()):
            # A thread cannot be stopped; its late writes are refused.
            await run.give_back()


runner = Runner()
"""Of this process."""
