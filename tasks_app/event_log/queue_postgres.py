"""The choice of tasks on PostgreSQL: a part of the claim's statement."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from a2a.states import RUNNABLE
from tasks_app.database.sql import among
from tasks_app.event_log.queue import Demand
from tasks_app.models import Task

_TASK = Task._meta.db_table
LOCKS = 0xA2A
"""The first key of the advisory locks of agents with a limit. The second is a hash of the name."""
LOCK_PATIENCE = "100ms"
"""The longest wait for another process that claims tasks of the same agent, which takes a few milliseconds."""

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
