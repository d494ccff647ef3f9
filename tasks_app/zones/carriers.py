"""Carriers bring the bytes of a call to the execution zone, and those of the answer back."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from tasks_app.runner.places import Places

SECONDS = 30.0
"""The most time for one call."""
PATIENCE = 0.25
"""Seconds that a call waits for an outcome. A quick one needs no second call, and a slow text begins soon enough."""

SLOTS = 32
THREADS = ThreadPoolExecutor(SLOTS, thread_name_prefix="zone")
"""The threads of calls that block. All agents of a loop share asyncio's default executor, which also looks names up."""
PLACES = Places(SLOTS)
"""The places of these threads, for which owners take turns."""


class NoAnswer(Exception):
    """No answer came. The call may or may not have arrived, and is sent again under the same key."""


class Untrusted(Exception):
    """The execution zone has not proved who it is, so no call was sent. The sentence says what an operator can do."""


class Carrier(Protocol):
    """A way to the execution zone."""

    patience: float
    """The most seconds that a call may wait there for an outcome; 0 if calls are taken one after another."""

    async def carry(self, body: bytes, owner: str = "") -> bytes:
        """Return the body of the answer to a call of an owner. Raises NoAnswer and Untrusted."""


async def call_in_thread(function: Callable[[bytes], bytes], body: bytes, owner: str) -> bytes:
    """Return the answer of a function that blocks. Owners whose calls find no thread take turns."""
    places = PLACES
    await places.take(owner, None)
    try:
        work = THREADS.submit(function, body)
    except BaseException:
        places.give_back()
        raise
    work.add_done_callback(lambda _: places.give_back())
    return await asyncio.wrap_future(work)
