"""The queue of runnable tasks, and a process's demand on it: owners in turn, and within one by priority, then age.

An index gives the owners who have a runnable task one after the other, from the owner at whom the last claim ended. Of
each owner only as many tasks are read as the claim may take. So a claim costs what it takes, however long the queue of
an owner is. On PostgreSQL the choice is part of the claim's statement (queue_postgres.py). On SQLite it is made in its
transaction (queue_sqlite.py).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.backends.utils import CursorWrapper
from msgspec import Struct
from msgspec.structs import replace

from a2a.states import ACTIVE, RUNNABLE
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import among, one_of, sql_time
from tasks_app.limits.accounts import NOTHING, Count
from tasks_app.models import Task

_TASK = Task._meta.db_table


class Demand(Struct, frozen=True, kw_only=True):
    """A process's demand on the queue: runnable tasks of these agents and queues, `limit` at most."""

    agents: tuple[str, ...]
    queues: tuple[str, ...]
    limit: int
    after: int = 0
    """The owner who got the last task."""
    most: int = 2**31 - 1
    """Runs that one owner may have in this process while others wait."""
    busy: dict[int, int] = {}
    """Runs that owners have in this process already."""
    newcomers: bool = False
    """True to claim for owners only who have no such run in this process, one task each."""
    concurrency: dict[str, int] = {}
    """Working tasks that an agent may have in all processes together, for agents with a limit."""

    def rooms(self) -> dict[int, int]:
        """Return how many more runs each owner with runs in this process may have while others wait."""
        if self.newcomers:
            return dict.fromkeys(self.busy, 0)
        return {owner: max(0, self.most - runs) for owner, runs in self.busy.items()}

    @property
    def room(self) -> int:
        """The runs that any other owner may have while others wait."""
        return 1 if self.newcomers else self.most

    @property
    def spacious(self) -> int:
        """The number of tasks that may be claimed whatever their owners: if all belong to one owner, that owner has no
        more runs than while others wait."""
        return 0 if self.newcomers else min(self.limit, self.most - max(self.busy.values(), default=0))


def next_after(owners: Sequence[int], after: int) -> int:
    """Return the owner at whom a claim ended that began after the owner `after` and gave tasks to these owners."""
    return max(owners, key=lambda owner: (owner <= after, owner), default=after)


# ------------------------------------------------------------- concurrency


def without_limit(demand: Demand) -> Demand:
    """Return the demand for tasks of agents that may have any number of runs."""
    return replace(
        demand, agents=tuple(agent for agent in demand.agents if agent not in demand.concurrency), concurrency={}
    )


def with_limit(demand: Demand, working: Mapping[str, int]) -> list[Demand]:
    """Return a demand for each agent that is below its limit, given the number of its working tasks."""
    rooms = {agent: most - working.get(agent, 0) for agent, most in demand.concurrency.items()}
    return [
        replace(demand, agents=(agent,), limit=min(demand.limit, room), concurrency={})
        for agent, room in rooms.items()
        if room > 0
    ]


def working_of(cursor: CursorWrapper, agents: Sequence[str]) -> dict[str, int]:
    """Return the number of working tasks of each agent, in all processes."""
    where, values = one_of("agent", agents)
    cursor.execute(
        f"select agent, count(*) from {_TASK} where state {among(ACTIVE)} and {where} group by agent", values
    )
    return dict(cursor.fetchall())


# ------------------------------------------------------------------- count


def count_unfinished(now: datetime, before: datetime) -> dict[tuple[int, str], Count]:
    """Count the queued and running tasks by owner and agent: all of them, and those created up to each of the times.
    Only indexes are read."""
    times = [sql_time(now), sql_time(before)]
    filters = ", ".join(["count(*) filter (where created_at <= %s)"] * 2)
    part = f"select owner_id, agent, count(*), {filters} from {_TASK} where state {{}} group by owner_id, agent"
    counts: dict[tuple[int, str], Count] = {}
    with prepared() as cursor:
        cursor.execute(f"{part.format(among(RUNNABLE))} union all {part.format(among(ACTIVE))}", [*times, *times])
        for owner_id, agent, *numbers in cursor.fetchall():
            other = counts.get((owner_id, agent), NOTHING)
            total = [
                one + more for one, more in zip(numbers, (other.unfinished, other.older, other.before), strict=True)
            ]
            counts[owner_id, agent] = Count(unfinished=total[0], older=total[1], before=total[2])
    return counts
