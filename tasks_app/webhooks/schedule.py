"""The meaning of a receiver's answer, and the time of the next try."""

from datetime import datetime, timedelta
from enum import Enum, auto

from msgspec import Struct

from a2a.retry_after import read_retry_after

GAPS = (5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800)
"""Seconds from the first try to the second, from that to the third, and so on. The last gap repeats."""
JITTER = 0.2
"""The part of a gap by which it may be longer or shorter, so that deliveries that failed together spread out."""
LONGEST = timedelta(days=1)
"""The longest wait that a receiver may ask for."""


class Decision(Enum):
    """The consequence of a try for its delivery and its webhook."""

    DELIVERED = auto()
    RETRY = auto()
    GIVE_UP = auto()
    DROP = auto()
    """The webhook does not want the event any more."""
    DISABLE = auto()
    """The receiver is gone: give up the delivery, and disable the webhook."""


class TryResult(Struct, frozen=True, kw_only=True):
    """The result of a try: an HTTP status, or a sentence that says why there is none."""

    status: int | None = None
    error: str = ""
    retry_after: str = ""
    hopeless: bool = False
    """Whether another try would end the same way."""
    is_unwanted: bool = False
    """Whether the filter of the webhook does not let the event pass any more. Nothing was sent."""
    is_made: bool = True
    """False if nothing was sent, because the receiver has not agreed to deliveries."""
    size: int = 0
    """Bytes of the body that was sent."""


def decide(result: TryResult) -> Decision:
    """Return the consequence of a try.

    Any 2xx acknowledges it. After 408, 429, 5xx or no answer it is tried again. 410 ends the webhook, and any other
    status ends the delivery.
    """
    status = result.status
    if result.is_unwanted:
        return Decision.DROP
    if status is None:
        return Decision.GIVE_UP if result.hopeless else Decision.RETRY
    if 200 <= status < 300:
        return Decision.DELIVERED
    if status == 410:
        return Decision.DISABLE
    return Decision.RETRY if status in {408, 429} or status >= 500 else Decision.GIVE_UP


def next_try(result: TryResult, attempt: int, now: datetime, chance: float) -> datetime:
    """Return the time of the next try after this attempt, and not before the time that the receiver asked for.

    `chance` is a random number from 0 to 1.
    """
    gap = GAPS[min(max(attempt, 1), len(GAPS)) - 1] * (1 - JITTER + 2 * JITTER * chance)
    wish = read_retry_after(result.retry_after, now) or timedelta()
    return now + max(timedelta(seconds=gap), min(wish, LONGEST))
