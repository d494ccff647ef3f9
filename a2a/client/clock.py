"""The time, and chance, which the client reads from the machine so that a test may give its own."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from msgspec import Struct


class Clock(Struct, frozen=True, kw_only=True):
    """A source of time."""

    sleep: Callable[[float], Awaitable[None]]
    steady: Callable[[], float]
    """Seconds that never go back."""
    today: Callable[[], float]
    """Seconds since 1970, for dates that servers send."""
    chance: Callable[[], float]
    """A number from 0 to 1."""


SYSTEM = Clock(sleep=asyncio.sleep, steady=time.monotonic, today=time.time, chance=random.random)
