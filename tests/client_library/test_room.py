"""Large answers that never come whole: clients with one room hold so many of their bytes together, at most."""

import asyncio

import orjson
import pytest

from a2a.client import Client, errors
from a2a.client.room import SMALL, Room
from tests.client_library.faulty import FakeClock, faulty, plain, rpc, task
from tests.client_library.hostile import HEAD, written
from tests.conftest import until

HALF = 4 * SMALL
SIZES = [SMALL // 2, 3 * HALF]
"""A small answer, which takes no room, and one that is larger than all of the room."""


def answer(size: int) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "result": task(texts=["x" * size])})


async def held(room: Room, size: int) -> None:
    await asyncio.to_thread(until, lambda: room.amount >= size, "the bytes are held")


@pytest.mark.parametrize("media", ["application/json", "text/event-stream"])
async def test_an_answer_that_never_comes_whole_leaves_room_for_small_ones_alone(media: str) -> None:
    room = Room(2 * HALF)
    begun = written(f"{HEAD}{media}", b"data: " + b"x" * HALF, slowly=True)

    async def wait(client: Client) -> None:
        await (anext(aiter(client.stream("Hi"))) if "event" in media else client.get_task("t"))

    async with (
        faulty(begun) as hostile,
        faulty(*(plain(200, answer(size)) for size in (HALF // 2, *SIZES))) as server,
        rpc(hostile, FakeClock(), room=room) as one,
        rpc(server, FakeClock(), room=room) as other,
    ):
        waiting = asyncio.ensure_future(wait(one))
        await held(room, HALF)
        for size in (HALF // 2, SIZES[0]):
            assert len((await other.get_task("t")).artifacts[0].parts[0].text or "") == size, "it fits"
        with pytest.raises(errors.NoRoom, match=f"all of them may have {2 * HALF} bytes together"):
            await other.get_task("t")
        waiting.cancel()
        await asyncio.wait([waiting])
        assert room.amount == 0
        assert (await other.get_task("t")).id == "t", "one alone is read whatever its size"


async def test_events_that_came_whole_take_no_room() -> None:
    room, event = Room(HALF), orjson.dumps({"jsonrpc": "2.0", "result": {"task": task(texts=["x" * HALF])}})
    act = written(f"{HEAD}text/event-stream", b"data: " + event + b"\n\n: still here\n\n")
    async with faulty(act) as server, rpc(server, FakeClock(), room=room) as client:
        await anext(aiter(client.stream("Hi")))
    assert room.amount == 0
