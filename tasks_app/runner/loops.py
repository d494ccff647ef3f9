"""Event loops in threads of their own: one for each async agent by name, so that an agent that blocks its loop delays
runs of its own only. The runner's own loop, on which no agent ever runs, is one more."""

import asyncio
import threading
import time
from collections.abc import Callable

LOST = 8
"""Loops of a process that may be stuck at the same time. Beyond it no agent gets another loop: its tasks are left to
other processes."""
LATE = 0.75
"""Seconds without a pulse after which a loop counts as stuck."""


class Pulse:
    """A loop's proof that it goes on: a callback that it is asked to run."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.asked: float | None = None
        """When the pulse that has not come yet was asked for; None if none is due."""

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Run the function on the loop, from any thread; never when the loop has ended."""
        try:
            self.loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            if not self.loop.is_closed():
                raise

    def ask(self) -> None:
        """Ask for a pulse, unless one is due."""
        if self.asked is None:
            self.asked = time.monotonic()
            self.call(self._answer)

    def _answer(self) -> None:
        self.asked = None

    @property
    def silence(self) -> float:
        """Seconds for which a pulse has been due."""
        asked = self.asked
        return 0.0 if asked is None else time.monotonic() - asked


class RunLoop(Pulse):
    """An event loop and its thread."""

    def __init__(self, name: str) -> None:
        super().__init__(asyncio.new_event_loop())
        self.name = name
        self.thread = threading.Thread(target=self._live, name=f"loop-{name}", daemon=True)

    def start(self) -> "RunLoop":
        self.thread.start()
        return self

    def _live(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def stop(self) -> None:
        """End the loop once what it is doing lets it."""
        self.call(self.loop.stop)


class Loops:
    """The loops of the async agents, each started by the agent's first run."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.current: dict[str, RunLoop] = {}
        """By the agent's name."""
        self.replaced: list[RunLoop] = []
        """Stuck loops whose agents got another one."""

    def of(self, agent: str) -> RunLoop:
        """Return the loop for new runs of the agent."""
        with self.lock:
            place = self.current.get(agent)
            if place is None:
                place = self.current[agent] = RunLoop(agent).start()
            return place

    def all(self) -> list[RunLoop]:
        with self.lock:
            return [*self.current.values(), *self.replaced]

    def is_shut(self, agent: str) -> bool:
        """Whether the agent's loop is stuck, and there are too many such loops for another."""
        place = self.current.get(agent)
        return place is not None and len(self.replaced) >= LOST and place.silence > LATE

    def replace(self, stuck: RunLoop) -> None:
        """Give the agent a fresh loop beside its stuck one, unless it has one or too many are stuck."""
        with self.lock:
            if self.current.get(stuck.name) is stuck and len(self.replaced) < LOST:
                self.replaced.append(stuck)
                self.current[stuck.name] = RunLoop(stuck.name).start()

    def forget(self, place: RunLoop) -> None:
        """End a loop that was replaced: it goes on again, and no run is left on it."""
        with self.lock:
            if place not in self.replaced:
                return
            self.replaced.remove(place)
        place.stop()

    def stop(self) -> None:
        for place in self.all():
            place.stop()
        with self.lock:
            self.current, self.replaced = {}, []
