"""Deadlines of waits."""

import asyncio

import pytest

from tasks_app.database.errors import Busy
from tasks_app.database.waits import MOST_LATE, Waiting, Waits


class Wait(Waiting, eq=False):
    lack = "no answer"


async def test_waits_whose_deadline_has_come_end_in_groups() -> None:
    """Each of them is a refusal, and all at once would hold up other calls."""
    loop = asyncio.get_running_loop()
    waits, futures = Waits(loop), [loop.create_future() for _ in range(3 * MOST_LATE)]
    for future in futures:
        waits.add(Wait(future=future, ends=0.0))
    with pytest.raises(Busy):
        await futures[0]
    assert sum(future.done() for future in futures) == MOST_LATE
    done, late = await asyncio.wait(futures)
    assert ({type(future.exception()) for future in done}, late) == ({Busy}, set())
