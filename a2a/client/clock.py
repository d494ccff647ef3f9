"""The time and random numbers of the client. Tests supply their own."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from msgspec import Struct


class Clock(Struct, frozen=True, kw_only=True):
    """A source of time and random numbers."""

    sleep: Callable[[float], Awaitable[None]]
    steady: Callable[[], float]
    """Returns seconds that never go back."""
    today: Callable[[], float]
    """Returns the seconds since 1970, to compare with the dates of servers."""
    chance: Callable[[], float]
    """Returns a random number from 0 to 1."""


SYSTEM = Clock(sleep=asyncio.sleep, steady=time.monotonic, today=time.time, chance=random.random)
