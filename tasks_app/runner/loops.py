"""Event loops in threads of their own, one for each async agent by name, so that an agent that blocks its loop delays
no runs but its own. The runner has one more, on which no agent ever runs."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

log = logging.getLogger(__name__)
MAX_STUCK = 8
"""Stuck loops that a process replaces, at most. After that an agent with a stuck loop gets no other: its tasks are left
to other processes."""
LATE = 0.75
"""Seconds without a pulse after which a loop counts as stuck."""


class Pulse:
    """A proof that a loop goes on: a callback that the loop runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.due_since: float | None = None
        """The time when a pulse was requested that has not come yet; None if none is due."""

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Have the loop call the function, from any thread. Nothing is called once the loop has ended."""
        try:
            self.loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            if not self.loop.is_closed():
                raise

    def ask(self) -> None:
        """Request a pulse unless one is due."""
        if self.due_since is None:
            self.due_since = time.monotonic()
            self.call(self._answer)

    def _answer(self) -> None:
        self.due_since = None

    @property
    def silence(self) -> float:
        """The seconds since a pulse became due."""
        since = self.due_since
        return 0.0 if since is None else time.monotonic() - since


class LastingLoop(asyncio.SelectorEventLoop):
    """An event loop that its agents cannot stop."""

    is_ending = False
    """True once its owner has ended it."""

    def stop(self) -> None:
        """Stop if the owner has ended the loop. Any other caller gets SystemExit, as from `sys.exit`."""
        if not self.is_ending:
            raise SystemExit("An agent has called stop() of its event loop.")
        super().stop()

    def _timer_handle_cancelled(self, handle: Any) -> None:
        """Let go of the context of a timer that was cancelled, such as that of a timeout: it never runs.

        A loop keeps up to a hundred such timers until their time. Their contexts would keep the runs that have set
        them, with all their messages.
        """
        super()._timer_handle_cancelled(handle)  # type: ignore[misc]
        handle._context = None


OnExit = Callable[[BaseException], object]


class RunLoop(Pulse):
    """An event loop and its thread."""

    loop: LastingLoop

    def __init__(self, name: str, on_exit: OnExit | None = None) -> None:
        super().__init__(LastingLoop())
        self.name = name
        self.on_exit = on_exit
        """The function that gets each SystemExit and KeyboardInterrupt of a task or callback, on the loop's thread."""
        self.thread = threading.Thread(target=self._live, name=f"loop-{name}", daemon=True)

    def start(self) -> "RunLoop":
        self.thread.start()
        return self

    def _live(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            while not self.loop.is_ending:
                self._run()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        except BaseException:
            log.exception("the event loop of agent %s has ended", self.name)
        with contextlib.suppress(Exception):  # An agent may have closed what the loop works with.
            self.loop.close()

    def _run(self) -> None:
        """Run the loop until its end, or until an exception of a task or callback makes asyncio leave it.

        In the second case the loop has lost no other callback, and can be run again.
        """
        try:
            self.loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            if self.on_exit is not None:
                self.on_exit(error)

    @property
    def is_dead(self) -> bool:
        """True once its thread has ended by an error."""
        return not self.loop.is_ending and not self.thread.is_alive()

    def stop(self) -> None:
        """Stop the loop after its current callback."""
        self.loop.is_ending = True
        self.call(self.loop.stop)


class Loops:
    """The loops of the async agents. The first run of an agent starts its loop."""

    def __init__(self, on_exit: OnExit) -> None:
        self.on_exit = on_exit
        self.lock = threading.Lock()
        self.current: dict[str, RunLoop] = {}
        """The loop of each agent, by its name."""
        self.stuck: list[RunLoop] = []
        """Loops that were stuck, and whose agents got another."""

    def of(self, agent: str) -> RunLoop:
        """Return the loop for new runs of the agent."""
        with self.lock:
            place = self.current.get(agent)
            if place is None or place.is_dead:
                place = self._start(agent)
            return place

    def _start(self, agent: str) -> RunLoop:
        place = self.current[agent] = RunLoop(agent, self.on_exit).start()
        return place

    def all(self) -> list[RunLoop]:
        with self.lock:
            return [*self.current.values(), *self.stuck]

    def is_shut(self, agent: str) -> bool:
        """Return whether the agent's loop is stuck and cannot be replaced."""
        place = self.current.get(agent)
        return place is not None and len(self.stuck) >= MAX_STUCK and place.silence > LATE

    def replace(self, place: RunLoop) -> None:
        """Give the agent another loop beside its stuck one, unless it has one or too many are stuck."""
        with self.lock:
            if self.current.get(place.name) is place and len(self.stuck) < MAX_STUCK:
                self.stuck.append(place)
                self._start(place.name)

    def forget(self, place: RunLoop) -> None:
        """Stop a loop that was replaced, once it goes on again and has no run."""
        with self.lock:
            if place not in self.stuck:
                return
            self.stuck.remove(place)
        place.stop()

    def keep(self, agents: Collection[str]) -> None:
        """Stop the loops of all other agents."""
        with self.lock:
            places = [place for name, place in self.current.items() if name not in agents]
            for place in places:
                del self.current[place.name]
        for place in places:
            place.stop()

    def discard(self, place: RunLoop) -> None:
        """Forget a loop whose thread has ended."""
        with self.lock:
            if self.current.get(place.name) is place:
                del self.current[place.name]
            if place in self.stuck:
                self.stuck.remove(place)

    def stop(self) -> None:
        for place in self.all():
            place.stop()
        with self.lock:
            self.current, self.stuck = {}, []
