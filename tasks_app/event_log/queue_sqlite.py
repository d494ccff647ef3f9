"""The choice of tasks on SQLite, in the claim's transaction: that of PostgreSQL, step by step."""

from django.db.backends.utils import CursorWrapper

from a2a.states import RUNNABLE
from tasks_app.database.sql import among, one_of
from tasks_app.event_log.queue import Demand
from tasks_app.models import Task

_TASK = Task._meta.db_table
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
