"""Streams that are taken up again, by cursors anywhere in a long log and at another process."""

import asyncio
import statistics
import time
from contextlib import AsyncExitStack
from typing import Any

import pytest

from a2a.dialects.json.json_1_0 import encode_task
from tests.faults.clients import PATIENCE, Client, Frame, client, folded, listening
from tests.faults.conftest import Plant

pytestmark = pytest.mark.fault


async def counted(caller: Client, words: int) -> tuple[str, list[Frame]]:
    """Return a task that has ended after so many words, and its whole log."""
    task_id = await caller.send("counts", words=words)
    await caller.state(task_id, "TASK_STATE_COMPLETED", 4 * PATIENCE)
    return task_id, await resumed(caller, task_id, 1)


async def resumed(caller: Client, task_id: str, after: int) -> list[Frame]:
    """Return all frames of a stream of a task that has ended."""
    async with listening(caller, "SubscribeToTask", {"id": task_id}, after=after) as stream:
        await stream.end()
    assert stream.broke is None
    assert not stream.refusal, stream.refusal
    return stream.frames


async def first_frame(caller: Client, task_id: str, after: int) -> float:
    """Return milliseconds until a stream says how the task was at its cursor."""
    since = time.perf_counter()
    async with listening(caller, "SubscribeToTask", {"id": task_id}, after=after) as stream:
        await stream.count(1)
        return (time.perf_counter() - since) * 1000


async def test_a_long_log_resumes_at_any_cursor_as_it_was_there(plant: Plant) -> None:
    web, other = await plant.web(), await plant.web()
    await plant.worker()
    async with client(web) as caller, client(other) as elsewhere:
        task_id, log = await counted(caller, 2_000)
        assert [frame.id for frame in log] == list(range(1, len(log) + 1))
        assert len(log) > 2_000
        for place, cursor in enumerate((2, 10, 499, 500, 1_024, 1_990, log[-1].id - 1)):
            frames = await resumed((caller, elsewhere)[place % 2], task_id, cursor)
            assert frames[0].id == cursor
            assert frames[0].result["task"] == encode_task(folded(log[:cursor]))
            assert frames[1:] == log[cursor:], "no gap, nothing twice"


@pytest.mark.long
async def test_the_first_frame_of_a_long_log_takes_as_long_at_either_end(plant: Plant, record_property: Any) -> None:
    web = await plant.web()
    await plant.worker()
    async with client(web) as caller:
        tasks = [(await counted(caller, 2_000))[0] for _ in range(5)]
        for cursor in (10, 1_990):
            spans = [await first_frame(caller, task_id, cursor) for _ in range(10) for task_id in tasks]
            figure = (round(statistics.median(spans), 1), round(max(spans), 1))
            record_property(f"first frame at cursor {cursor}, p50 and most in ms", figure)


@pytest.mark.long
async def test_the_streams_of_a_killed_web_are_taken_up_by_the_other(plant: Plant, record_property: Any) -> None:
    web, other = await plant.web(), await plant.web()
    await plant.worker()
    async with client(web) as caller, client(other) as elsewhere, AsyncExitStack() as stack:
        task_id, log = await counted(caller, 500)
        cut = []
        for place in range(200):
            cursor = 1 + 2 * place
            wish = listening(caller, "SubscribeToTask", {"id": task_id}, after=cursor)
            cut.append((cursor, await stack.enter_async_context(wish)))
        web.kill()
        since = time.perf_counter()
        again = await asyncio.gather(*(resumed(elsewhere, task_id, cursor) for cursor, _ in cut))
        record_property("200 streams of 500 events at the other web, seconds", round(time.perf_counter() - since, 2))
    for (cursor, _), frames in zip(cut, again, strict=True):
        assert frames[0].result["task"] == encode_task(folded(log[:cursor]))
        assert frames[1:] == log[cursor:]
