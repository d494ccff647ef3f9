"""A process's demand on the queue: as many tasks as it has free slots, with owners in turn.

An owner may have half of the slots while others wait, and all of them while no other does. So that another owner finds
a slot even then, there are spare slots for newcomers: owners who have no run of the kind in this process.
"""

from collections import Counter
from collections.abc import Sequence

from django.conf import settings

from a2a.agents import Agent
from tasks_app.event_log import Demand, TaskRead, next_after

BATCH = 64
"""Tasks of one claim, at most."""
SPARE = 8
"""The number of slots for each spare slot."""


def slots_of(is_async: bool) -> int:
    """Return the number of slots of a kind in a process, without spare slots."""
    slots: int = settings.A2A_ASYNC_SLOTS if is_async else settings.A2A_SYNC_SLOTS
    return slots


def spare_of(slots: int) -> int:
    """Return the number of spare slots beside these slots."""
    return slots // SPARE


class Turns:
    """The owner whose turn it is, for each kind of agents."""

    def __init__(self) -> None:
        self.after: dict[tuple[str, ...], int] = {}
        """The owner who got the last task, by the names of the agents."""

    def demand(self, agents: Sequence[Agent], slots: int, free: int, busy: Counter[int]) -> Demand | None:
        """Return the demand for these agents, given the runs that owners have already; None if there is no slot."""
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

    def note(self, demand: Demand, reads: Sequence[TaskRead]) -> bool:
        """Note which tasks were claimed for a demand. Return whether there may be more for it."""
        owners = [read.owner_id for read in reads if read.agent in demand.agents]
        if not owners:
            return False
        self.after[demand.agents] = next_after(owners, demand.after)
        # Fewer tasks than in demand are all that there are, unless the share of an owner was limited.
        was_limited = len(set(owners)) > 1 or any(runs >= demand.most for runs in demand.busy.values())
        return len(owners) >= demand.limit or was_limited
