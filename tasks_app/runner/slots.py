"""A process's demand on the queue: as many tasks as it has slots free, in turns by owner.

An owner may have half of the slots while others wait, and all of them while none does. So that the others find a slot
even then, there are some beyond that number which only owners take who have no run of the kind here.
"""

from collections import Counter
from collections.abc import Sequence

from django.conf import settings

from a2a.agents import Agent
from tasks_app.event_log import Demand, TaskRead, next_after

BATCH = 64
"""Tasks claimed at once."""
SPARE = 8
"""A slot for newcomers for so many others."""


def slots_of(is_async: bool) -> int:
    """Runs of a kind that a process has, without those for newcomers."""
    slots: int = settings.A2A_ASYNC_SLOTS if is_async else settings.A2A_SYNC_SLOTS
    return slots


def spare_of(slots: int) -> int:
    """Slots for newcomers beside so many others."""
    return slots // SPARE


class Turns:
    """Whose turn it is, for each kind of agents."""

    def __init__(self) -> None:
        self.after: dict[tuple[str, ...], int] = {}
        """The owner served last, by the names of the agents."""

    def demand(self, agents: Sequence[Agent], slots: int, free: int, busy: Counter[int]) -> Demand | None:
        """Return what may be claimed for these agents, given the runs that owners have already; None if nothing may."""
        limit = free if free > 0 else free + spare_of(slots)
        if not agents or limit <= 0:
            return None
        names = tuple(agent.name for agent in agents)
        return Demand(
            agents=names,
            queues=tuple({agent.queue for agent in agents}),
            limit=min(limit, BATCH),
            after=self.after.get(names, 0),
            most=max(1, int(slots * settings.A2A_OWNER_SLOTS)),
            busy=dict(busy),
            newcomers=free <= 0,
            concurrency={agent.name: agent.concurrency for agent in agents if agent.concurrency},
        )

    def served(self, demand: Demand, reads: Sequence[TaskRead]) -> bool:
        """Notes what was claimed for a demand; whether there may be more for it."""
        owners = [read.owner_id for read in reads if read.agent in demand.agents]
        if not owners:
            return False
        self.after[demand.agents] = next_after(owners, demand.after)
        # Less than was wanted is all that there is, unless a share of somebody was held back.
        held_back = len(set(owners)) > 1 or any(runs >= demand.most for runs in demand.busy.values())
        return len(owners) >= demand.limit or held_back
