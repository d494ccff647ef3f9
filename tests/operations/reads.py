"""Calls of a person who has as many long reads waiting as it may have."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, TypeVar

from tasks_app.database.bridge import bridge
from tasks_app.database.lanes import SharedLane
from tasks_app.database.work import DoSlowly
from tests.conftest import PATIENCE, Person, until

Result = TypeVar("Result")


def beside_reads(person: Person, settings: Any, call: Callable[[], Result]) -> Result:
    """Return the result of a call. The reads end when a read of the call waits too, or when it is refused."""
    settings.A2A_OWNER_READS = 1
    lane, end = _roomy_lane(), Event()
    with ThreadPoolExecutor(1) as threads:
        try:
            for _ in range(settings.A2A_READ_CONNECTIONS + 1):
                bridge.put(DoSlowly(end.wait, person.caller.owner_id))
            until(lambda: lane.size == 2, "all others are under way")
            outcome = threads.submit(call)
            until(lambda: outcome.done() or lane.size > 2, "the call reads, too")
        finally:
            end.set()
        return outcome.result(PATIENCE)


def _roomy_lane() -> SharedLane:
    """Return the lane of long reads, where an owner has all threads but one, however many calls there were before."""
    bridge.do(DoSlowly(lambda: None))
    lane = bridge.lanes["slow"]
    assert isinstance(lane, SharedLane)
    with lane.ready:
        lane.small_calls, lane.gives_room = lambda: 0, False
    return lane
