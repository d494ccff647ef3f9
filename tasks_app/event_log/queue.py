"""Which runnable tasks are next: owners in turn, and within an owner by priority, then age.

The owners who have a task to run are found one after the other in an index, from the one behind whom the last claim
ended; of each so many tasks are read as may be taken. So a claim costs what it takes, however long the queue of an
owner is. On PostgreSQL the choice is part of the claim's statement, on SQLite it is made in its transaction.
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
from tasks_app.database.rows import among, on_postgres, sqlite_time
from tasks_app.event_log.read import one_of
from tasks_app.models import Task

_TASK = Task._meta.db_table
LOCKS = 0xA2A
"""The first key of the locks of agents with a limit; the second is a number made of the name."""
LOCK_PATIENCE = "100ms"
"""How long is waited for another process that claims tasks of the same agent: it takes a few milliseconds."""


class Want(Struct, frozen=True, kw_only=True):
    """Runnable tasks of these agents and queues, at most so many."""

    agents: tuple[str, ...]
    queues: tuple[str, ...]
    limit: int
    after: int = 0
    """The owner who was served last."""
    most: int = 2**31 - 1
    """Runs that one owner may have here while others wait."""
    busy: dict[int, int] = {}
    """The runs that owners have here already."""
    newcomers: bool = False
    """Only owners who have none of these runs here, and one task each."""
    concurrency: dict[str, int] = {}
    """Working tasks that some of the agents may have, over all processes."""

    def rooms(self) -> dict[int, int]:
        """How many more runs each owner who is at work here may have while others wait."""
        if self.newcomers:
            return dict.fromkeys(self.busy, 0)
        return {owner: max(0, self.most - runs) for owner, runs in self.busy.items()}

    @property
    def room(self) -> int:
        """How many runs any other owner may have while others wait."""
        return 1 if self.newcomers else self.most

    @property
    def spacious(self) -> int:
        """How many tasks may be taken without a look at their owners: if all are of one, that owner has no more than
        others would have to wait for."""
        return 0 if self.newcomers else min(self.limit, self.most - max(self.busy.values(), default=0))


def next_after(served: Sequence[int], after: int) -> int:
    """The owner with whom a turn that began after that one has ended."""
    return max(served, key=lambda owner: (owner <= after, owner), default=after)


# The first row of an agent and queue, from an owner on. Ordered as the index task_turn is: by the owner alone,
# PostgreSQL takes another index that begins with it, and reads all the tasks of an owner.
_FIRST = f"""select t.owner_id from {_TASK} t
    where t.state {among(RUNNABLE)} and t.queue = {{queue}} and t.agent = {{agent}} {{behind}}
        and (t.not_before is null or t.not_before <= now())
    order by t.owner_id, t.priority desc, t.created_at limit 1"""
# One step of the search: the first owner behind that one, over all pairs of agent and queue.
_NEXT = f"""(select min(m.owner_id) from {{p}} p cross join lateral (
    {_FIRST.format(queue="p.queue", agent="p.agent", behind="and t.owner_id > {behind}")}) m)"""

# 1. p: the pairs of agent and queue that have tasks; h: the owners who are at work here, and what room they have.
# 2. o: the owners in turn, from the one behind the last to the end, then (lap 1) from the beginning; as many with room
#    as there are tasks wanted, and on the way those without.
# 3. n: how many tasks each may have, so that all together have about as many as are wanted. Owners without room get
#    none while anybody waits who has some; when nobody else does, they share.
# 4. c: their tasks, locked; what other processes have locked is skipped. First one of each, then a second of each.
_WANTED = f"""
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


# Turns matter only to those who cannot all be served. So the tasks that there are come first, one more of them than may
# be taken: when there are not as many, they are all taken, in a third of the time that the search for turns takes.
_ALL = f"""
f{{n}} as materialized (
    select id, pushes from {_TASK} where state {among(RUNNABLE)} and agent = any(%s::text[]) and queue = any(%s::text[])
        and (not_before is null or not_before <= now()) limit %s + 1 for no key update skip locked),
m{{n}} as materialized (select count(*) > %s as more from f{{n}}),
c{{n}} as materialized (select id, pushes from f{{n}} where not (select more from m{{n}}))
"""


class Choice(NamedTuple):
    """A part of a statement that chooses tasks: its expressions, the last of which has them, and their values."""

    sql: str
    name: str
    values: list[Any]
    more: str = "false"
    """An expression that says that there are more than may be taken, and that none of them was chosen."""


def everything(want: Want, place: int) -> Choice:
    """The choice of all tasks of a want that has room for them, for PostgreSQL."""
    most = want.spacious
    sql, name, more = _everything(place)
    return Choice(sql, name, [list(want.agents), list(want.queues), most, most], more)


@cache
def _everything(place: int) -> tuple[str, str, str]:
    """Return the texts of a choice: no value is part of them, so that the database plans each once."""
    return _ALL.format(n=place), f"c{place}", f"(select more from m{place})"


def wanted(want: Want, place: int) -> Choice:
    """The choice of a want, for PostgreSQL."""
    rooms = want.rooms()
    full = [owner for owner, room in rooms.items() if not room]
    values = [
        list(want.agents), list(want.queues), list(rooms), list(rooms.values()), want.after, full, want.limit,
        want.after, want.limit, want.newcomers, want.room, want.limit,
    ]  # fmt: skip
    return Choice(_turns(place), f"c{place}", values)


@cache
def _turns(place: int) -> str:
    pairs = f"p{place}"
    return _WANTED.format(
        n=place, next=_NEXT.format(p=pairs, behind="o.owner_id"), first=_NEXT.format(p=pairs, behind="-1")
    )


# ------------------------------------------------------------------ SQLite

_DUE = f"state {among(RUNNABLE)} and queue = %s and agent = %s and (not_before is null or not_before <= %s)"


def choose(cursor: CursorWrapper, want: Want, now: str) -> list[str]:
    """The ids of the tasks, on SQLite: the same choice, step by step."""
    if (most := want.spacious) > 0 and len(found := _some(cursor, want, most + 1, now)) <= most:
        return found
    rooms = want.rooms()
    pairs = _pairs(cursor, want)
    if not pairs:
        return []
    owners = _owners(cursor, want, pairs, rooms, now)
    fit = [owner for owner in owners if rooms.get(owner, want.room) > 0]
    share = -(-want.limit // max(1, len(fit) or len(owners)))
    shared = not want.newcomers and (len(owners) == 1 or not fit)
    rounds: list[tuple[int, int, str]] = []
    for place, owner in enumerate(owners):
        most = share if shared else min(share, rooms.get(owner, want.room))
        rounds += [(turn, place, task_id) for turn, task_id in enumerate(_tasks(cursor, pairs, owner, most, now))]
    return [task_id for _, _, task_id in sorted(rounds)[: want.limit]]


def _some(cursor: CursorWrapper, want: Want, most: int, now: str) -> list[str]:
    """Return tasks of the want, at most so many, whoever they belong to."""
    agents, names = one_of("agent", want.agents)
    queues, more = one_of("queue", want.queues)
    cursor.execute(
        f"select id from {_TASK} where state {among(RUNNABLE)} and {agents} and {queues} "
        "and (not_before is null or not_before <= %s) limit %s",
        [*names, *more, now, most],
    )
    return [task_id for (task_id,) in cursor.fetchall()]


def _owners(
    cursor: CursorWrapper, want: Want, pairs: list[tuple[str, str]], rooms: dict[int, int], now: str
) -> list[int]:
    """The owners in turn."""
    owners: list[int] = []
    fit, lap, last = 0, 0, want.after
    step = f"select * from (select owner_id from {_TASK} where {_DUE} and owner_id > %s order by owner_id limit 1)"
    steps = f"select min(owner_id) from ({' union all '.join([step] * len(pairs))})"
    while fit < want.limit:
        cursor.execute(steps, [value for pair in pairs for value in (*pair, now, last)])
        (owner,) = cursor.fetchone()
        if owner is None and lap == 0:
            lap, last = 1, -1
            continue
        if owner is None or (lap == 1 and owner > want.after):
            break
        owners.append(owner)
        fit += rooms.get(owner, want.room) > 0
        last = owner
    return owners


def _tasks(cursor: CursorWrapper, pairs: list[tuple[str, str]], owner: int, most: int, now: str) -> list[str]:
    """The tasks of an owner who has the turn."""
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


def _pairs(cursor: CursorWrapper, want: Want) -> list[tuple[str, str]]:
    """The pairs of queue and agent that have tasks: few, of all that there could be."""
    pairs = [(queue, agent) for agent in want.agents for queue in want.queues]
    return [pair for pair in pairs if _has_tasks(cursor, pair)]


def _has_tasks(cursor: CursorWrapper, pair: tuple[str, str]) -> bool:
    cursor.execute(f"select 1 from {_TASK} where state {among(RUNNABLE)} and queue = %s and agent = %s limit 1", pair)
    return cursor.fetchone() is not None


# ------------------------------------------------------------- concurrency


def unlimited(want: Want) -> Want:
    """The want for the agents that may have any number of runs."""
    return replace(want, agents=tuple(agent for agent in want.agents if agent not in want.concurrency), concurrency={})


def limited(want: Want, working: Mapping[str, int]) -> list[Want]:
    """A want for each of the agents that have a limit and are below it, given how many tasks are worked on."""
    rooms = {agent: most - working.get(agent, 0) for agent, most in want.concurrency.items()}
    return [
        replace(want, agents=(agent,), limit=min(want.limit, room), concurrency={})
        for agent, room in rooms.items()
        if room > 0
    ]


def working_of(cursor: Any, agents: Sequence[str]) -> dict[str, int]:
    """How many tasks of each agent are worked on, in any process."""
    where, values = one_of("agent", agents)
    cursor.execute(
        f"select agent, count(*) from {_TASK} where state {among(ACTIVE)} and {where} group by agent", values
    )
    return dict(cursor.fetchall())


def lock_agents(cursor: Any, agents: Sequence[str]) -> None:
    """Until the end of the transaction no other process claims tasks of these agents, on PostgreSQL. Raises an error
    of the database when one takes long."""
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
    """The queued and running tasks by owner and agent, from the indexes alone; those that are older than two times are
    counted apart."""
    times = [now, before] if on_postgres() else [sqlite_time(now), sqlite_time(before)]
    filters = ", ".join(["count(*) filter (where created_at <= %s)"] * 2)
    part = f"select owner_id, agent, count(*), {filters} from {_TASK} where state {{}} group by owner_id, agent"
    found: dict[tuple[int, str], Count] = {}
    with prepared() as cursor:
        cursor.execute(f"{part.format(among(RUNNABLE))} union all {part.format(among(ACTIVE))}", [*times, *times])
        for owner_id, agent, *numbers in cursor.fetchall():
            other = found.get((owner_id, agent), NOTHING)
            total = [
                one + more for one, more in zip(numbers, (other.unfinished, other.older, other.before), strict=True)
            ]
            found[owner_id, agent] = Count(unfinished=total[0], older=total[1], before=total[2])
    return found
