"""Chooses the runnable tasks that a claim takes: owners in turn, and within an owner by priority, then age.

An index gives the owners who have a runnable task one after the other, from the owner at whom the last claim ended. Of
each owner only as many tasks are read as the claim may take. So a claim costs what it takes, however long the queue of
an owner is. On PostgreSQL the choice is part of the claim's statement. On SQLite it is made in its transaction.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from django.db.backends.utils import CursorWrapper
from msgspec import Struct
from msgspec.structs import replace

from a2a.states import ACTIVE, RUNNABLE
from tasks_app.callers.accounts import NOTHING, Count
from tasks_app.database.prepared import prepared
from tasks_app.database.sql import among, on_postgres, one_of, sqlite_time
from tasks_app.models import Task

_TASK = Task._meta.db_table
LOCKS = 0xA2A
"""The first key of the advisory locks of agents with a limit. The second is a hash of the name."""
LOCK_PATIENCE = "100ms"
"""The longest wait for another process that claims tasks of the same agent, which takes a few milliseconds."""


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


# The first row of an agent and queue, from an owner on. The order is that of the index task_turn. If it were by the
# owner alone, PostgreSQL would take another index that begins with the owner, and read all tasks of an owner.
_FIRST = f"""select t.owner_id from {_TASK} t
    where t.state {among(RUNNABLE)} and t.queue = {{queue}} and t.agent = {{agent}} {{behind}}
        and (t.not_before is null or t.not_before <= now())
    order by t.owner_id, t.priority desc, t.created_at limit 1"""
# One step of the search: the first owner after an owner, over all pairs of agent and queue.
_NEXT = f"""(select min(m.owner_id) from {{p}} p cross join lateral (
    {_FIRST.format(queue="p.queue", agent="p.agent", behind="and t.owner_id > {behind}")}) m)"""

# 1. p: the pairs of agent and queue that have tasks. h: the owners with runs in this process, and the room of each.
# 2. o: the owners in turn, from the one after the last owner to the end, then (lap 1) from the beginning, until there
#    are as many owners with room as tasks in demand. Owners without room are passed on the way, and counted.
# 3. n, s: the share of each owner. All shares together are about as many tasks as are in demand. Owners without room
#    get none while an owner with room waits. If there is none, they share.
# 4. c: the tasks of these owners, locked; rows that other transactions have locked are skipped. The first task of each
#    owner comes first, then the second of each.
_IN_TURNS = f"""
p{{n}} as materialized (
    select q.queue, a.agent from unnest(%s::text[]) a(agent) cross join unnest(%s::text[]) q(queue)
        cross join lateral ({_FIRST.format(queue="q.queue", agent="a.agent", behind="")}) t),
h{{n}} as materialized (select h.owner_id, h.room from unnest(%s::bigint[], %s::bigint[]) as h(owner_id, room)),
o{{n}}(place, lap, owner_id, fit) as (
    select 0, 0, %s::bigint, 0
    union all
    select o.place + 1, y.lap, y.owner_id, o.fit + case when y.owner_id = any(%s::bigint[]) then 0 else 1 end
    from o{{n}} o cross join lateral (select {{next}} as owner_id offset 0) x cross join lateral (
        select case when x.owner_id is null then 1 else o.lap end as lap,
            case when x.owner_id is null and o.lap = 0 then {{first}} else x.owner_id end as owner_id offset 0) y
    where o.fit < %s::bigint and (y.lap = 0 or y.owner_id <= %s::bigint) and y.owner_id is not null),
n{{n}} as materialized (
    select fit, ceil(%s::numeric / greatest(1, coalesce(nullif(fit, 0), total)))::bigint as share, total = 1 as lonely
    from (select max(fit) as fit, count(*) - 1 as total from o{{n}}) x),
s{{n}} as materialized (
    select o.owner_id, o.place,
        case when not %s::boolean and (n.lonely or n.fit = 0) then n.share
            else least(n.share, coalesce(h.room, %s::bigint)) end as most
    from o{{n}} o cross join n{{n}} n left join h{{n}} h on h.owner_id = o.owner_id where o.place > 0),
c{{n}} as materialized (
    select id, pushes from (
        select t.id, t.pushes, s.place, s.most,
            row_number() over (partition by s.owner_id order by t.priority desc, t.created_at) as round
        from s{{n}} s cross join p{{n}} p cross join lateral (
            select id, pushes, priority, created_at from {_TASK} where state {among(RUNNABLE)} and queue = p.queue
                and agent = p.agent and owner_id = s.owner_id and (not_before is null or not_before <= now())
            order by priority desc, created_at limit s.most for no key update skip locked) t) r
    where round <= most order by round, place limit %s)
"""


# Turns matter only if there are more tasks than the demand. So first read the runnable tasks, one more than may be
# claimed. If there are fewer, all are claimed, in a third of the time that the search for turns takes.
# 1. f: the tasks, locked. 2. m: whether there are more than may be claimed. 3. c: the tasks, or none if there are more.
_ALL = f"""
f{{n}} as materialized (
    select id, pushes from {_TASK} where state {among(RUNNABLE)} and agent = any(%s::text[]) and queue = any(%s::text[])
        and (not_before is null or not_before <= now()) limit %s + 1 for no key update skip locked),
m{{n}} as materialized (select count(*) > %s as more from f{{n}}),
c{{n}} as materialized (select id, pushes from f{{n}} where not (select more from m{{n}}))
"""


class Choice(NamedTuple):
    """The part of a claim's statement that chooses tasks."""

    sql: str
    """The table expressions."""
    name: str
    """The expression that has the chosen tasks."""
    values: list[Any]
    more: str = "false"
    """SQL that is true if there are more tasks than may be claimed, so that none was chosen."""


def everything(demand: Demand, place: int) -> Choice:
    """Return the choice of all tasks in demand if there is room for them, for PostgreSQL."""
    most = demand.spacious
    sql, name, more = _everything(place)
    return Choice(sql, name, [list(demand.agents), list(demand.queues), most, most], more)


@cache
def _everything(place: int) -> tuple[str, str, str]:
    """Return SQL, name and more of a choice. No value is part of the text, so that the database plans it once."""
    return _ALL.format(n=place), f"c{place}", f"(select more from m{place})"


def in_turns(demand: Demand, place: int) -> Choice:
    """Return the choice of tasks in demand by owners in turn, for PostgreSQL."""
    rooms = demand.rooms()
    full = [owner for owner, room in rooms.items() if not room]
    pairs = [list(demand.agents), list(demand.queues)]
    owners = [list(rooms), list(rooms.values()), demand.after, full, demand.limit, demand.after]
    shares = [demand.limit, demand.newcomers, demand.room, demand.limit]
    return Choice(_turns(place), f"c{place}", [*pairs, *owners, *shares])


@cache
def _turns(place: int) -> str:
    pairs = f"p{place}"
    return _IN_TURNS.format(
        n=place, next=_NEXT.format(p=pairs, behind="o.owner_id"), first=_NEXT.format(p=pairs, behind="-1")
    )


# ------------------------------------------------------------------ SQLite

_DUE = f"state {among(RUNNABLE)} and queue = %s and agent = %s and (not_before is null or not_before <= %s)"


def choose(cursor: CursorWrapper, demand: Demand, now: str) -> list[str]:
    """Return the ids of the tasks in demand, on SQLite: the choice of PostgreSQL, step by step."""
    if (most := demand.spacious) > 0 and len(ids := _some(cursor, demand, most + 1, now)) <= most:
        return ids
    rooms = demand.rooms()
    pairs = _pairs(cursor, demand)
    if not pairs:
        return []
    owners = _owners(cursor, demand, pairs, rooms, now)
    fit = [owner for owner in owners if rooms.get(owner, demand.room) > 0]
    share = -(-demand.limit // max(1, len(fit) or len(owners)))
    shared = not demand.newcomers and (len(owners) == 1 or not fit)
    rounds: list[tuple[int, int, str]] = []
    for place, owner in enumerate(owners):
        most = share if shared else min(share, rooms.get(owner, demand.room))
        rounds += [(turn, place, task_id) for turn, task_id in enumerate(_tasks(cursor, pairs, owner, most, now))]
    return [task_id for _, _, task_id in sorted(rounds)[: demand.limit]]


def _some(cursor: CursorWrapper, demand: Demand, most: int, now: str) -> list[str]:
    """Return tasks in demand whatever their owners, `most` at most."""
    agents, names = one_of("agent", demand.agents)
    queues, more = one_of("queue", demand.queues)
    cursor.execute(
        f"select id from {_TASK} where state {among(RUNNABLE)} and {agents} and {queues} "
        "and (not_before is null or not_before <= %s) limit %s",
        [*names, *more, now, most],
    )
    return [task_id for (task_id,) in cursor.fetchall()]


def _owners(
    cursor: CursorWrapper, demand: Demand, pairs: list[tuple[str, str]], rooms: dict[int, int], now: str
) -> list[int]:
    """Return the owners in turn."""
    owners: list[int] = []
    fit, lap, last = 0, 0, demand.after
    step = f"select * from (select owner_id from {_TASK} where {_DUE} and owner_id > %s order by owner_id limit 1)"
    steps = f"select min(owner_id) from ({' union all '.join([step] * len(pairs))})"
    while fit < demand.limit:
        cursor.execute(steps, [value for pair in pairs for value in (*pair, now, last)])
        (owner,) = cursor.fetchone()
        if owner is None and lap == 0:
            lap, last = 1, -1
            continue
        if owner is None or (lap == 1 and owner > demand.after):
            break
        owners.append(owner)
        fit += rooms.get(owner, demand.room) > 0
        last = owner
    return owners


def _tasks(cursor: CursorWrapper, pairs: list[tuple[str, str]], owner: int, most: int, now: str) -> list[str]:
    """Return the next tasks of an owner."""
    if most < 1:
        return []
    part = (
        f"select * from (select id, priority, created_at from {_TASK} where {_DUE} and owner_id = %s "
        "order by priority desc, created_at limit %s)"
    )
    cursor.execute(
        f"{' union all '.join([part] * len(pairs))} order by priority desc, created_at limit %s",
        [*(value for pair in pairs for value in (*pair, now, owner, most)), most],
    )
    return [task_id for task_id, *_ in cursor.fetchall()]


def _pairs(cursor: CursorWrapper, demand: Demand) -> list[tuple[str, str]]:
    """Return the pairs of queue and agent that have tasks: few of all possible pairs."""
    pairs = [(queue, agent) for agent in demand.agents for queue in demand.queues]
    return [pair for pair in pairs if _has_tasks(cursor, pair)]


def _has_tasks(cursor: CursorWrapper, pair: tuple[str, str]) -> bool:
    cursor.execute(f"select 1 from {_TASK} where state {among(RUNNABLE)} and queue = %s and agent = %s limit 1", pair)
    return cursor.fetchone() is not None


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


def lock_agents(cursor: Any, agents: Sequence[str]) -> None:
    """Keep other processes from claiming tasks of these agents until the end of the transaction, on PostgreSQL.

    Raises an error of the database when another process takes longer than LOCK_PATIENCE.
    """
    cursor.execute("select set_config('lock_timeout', %s, true)", [LOCK_PATIENCE])
    locks = "select pg_advisory_xact_lock(%s, hashtext(agent)) from unnest(%s::text[]) as agent"
    cursor.execute(locks, [LOCKS, sorted(agents)])


def runnable_of(cursor: Any, agents: Sequence[str]) -> list[str]:
    """Return the agents that have a task to run."""
    cursor.execute(
        "select agent from unnest(%s::text[]) as agent where exists ("
        f"select 1 from {_TASK} t where t.state {among(RUNNABLE)} and t.agent = agent.agent)",
        [list(agents)],
    )
    return [agent for (agent,) in cursor.fetchall()]


# ------------------------------------------------------------------- count


def count_unfinished(now: datetime, before: datetime) -> dict[tuple[int, str], Count]:
    """Count the queued and running tasks by owner and agent, from the indexes alone, and apart from that those created
    up to either time."""
    times = [now, before] if on_postgres() else [sqlite_time(now), sqlite_time(before)]
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
