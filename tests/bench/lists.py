"""Lists of one owner with very many tasks, by each filter, from one connection and from many.

Lists that differ are read one by one, and equal ones that wait are read once. So both are measured.
"""

from collections.abc import Iterator

from tests.bench import load
from tests.bench.load import NUMBER, Calls, Line
from tests.bench.shapes import Deployment, deployed
from tests.faults.rows import FILTERS, fill

ROWS = 1_000_000
CONNECTIONS = 32
PAGE = 20
LENGTHS = [str(10 + number) for number in range(1_000)]
"""Lengths of the history that make lists differ. No task has so many messages, so that the answers are alike."""
KEEPING = {"A2A_TASK_DAYS": "3000"}
"""Keeps the copies, each of which is older than the one before."""


def measure(deployment: Deployment, seconds: float) -> Iterator[Line]:
    """Measure lists by each filter on a deployment of their own, whose tasks no other scenario has to delete."""
    with deployed(deployment.shape, **KEEPING) as full:
        fill(full.settings["DATABASE_URL"], full.ids(1)[0], ROWS)
        for name, (condition, _) in FILTERS.items():
            params = condition | {"pageSize": PAGE}
            equal = Calls("/jsonrpc", '"tasks":[{', "ListTasks", params)
            different = equal._replace(params=params | {"historyLength": NUMBER}, ids=LENGTHS)
            for label, calls, connections in (
                ("alone", equal, 1),
                (f"{CONNECTIONS} different", different, CONNECTIONS),
                (f"{CONNECTIONS} equal", equal, CONNECTIONS),
            ):
                seen = load.wrk(full.base, full.key, calls, connections=connections, seconds=seconds)
                yield Line(f"list {name}, {label}", seen.values, seen.errors, seen.example)
