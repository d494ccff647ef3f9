"""Deleting at an operator's word: the same steps, whatever the clock of this process, with a time of the operator's."""

import time
from collections.abc import Iterator
from datetime import datetime

from tasks_app.upkeep.kinds import Heap
from tasks_app.upkeep.stepping import Steps


def purge(heap: Heap, before: datetime) -> Iterator[int]:
    """Delete the rows of a heap that are older than the time, with pauses for those who write; yield how many went."""
    steps = Steps(heap)
    more = True
    while more:
        stepped = steps.step(before, alone=False)
        if stepped is None:
            return
        more = stepped.batch.more
        yield stepped.batch.count
        time.sleep(stepped.seconds if more else 0.0)


def count(heap: Heap, before: datetime) -> int:
    """Return how many rows there are to delete."""
    found: int = heap.old(before).count()
    return found
