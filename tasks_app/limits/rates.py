"""Rates, and the units that calls cost."""

import math

from msgspec import Struct

SEND_COST = 10
"""The units that a message to an agent costs its caller."""
LEAST_COST = 1
"""The units that a call costs if no operation performs it: it cannot be read, or a door itself answers it."""


class Rate(Struct, frozen=True):
    """A limit of use: an amount at once, and so much in a minute from then on."""

    per_minute: float
    burst: float

    @property
    def per_second(self) -> float:
        """The amount by which a bucket fills in a second."""
        return self.per_minute / 60

    @property
    def window(self) -> int:
        """The seconds in which an empty bucket becomes full."""
        return max(1, math.ceil(self.burst / self.per_second))
