"""The meaning of an answer for a delivery, and when the delivery is tried again."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Literal

from msgspec import Struct

GAPS = (5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800)
"""Seconds after the first try, the second, and so on; the last one repeats."""
JITTER = 0.2
"""The part of a gap by which it is longer or shorter, so that what failed together does not come back together."""
LONGEST = timedelta(days=1)
"""The most that a receiver may have us wait."""

Verdict = Literal["delivered", "again", "dead", "gone"]


class TryResult(Struct, frozen=True, kw_only=True):
    """How a try ended: with an HTTP status, or with a sentence about what kept it from one."""

    status: int | None = None
    error: str = ""
    retry_after: str = ""
    hopeless: bool = False
    """Another try would end the same way."""
    size: int = 0
    """Bytes of the body that was sent."""


def verdict(result: TryResult) -> Verdict:
    """Any 2xx is an acknowledgement; 408, 429 and 5xx are for later, as is no answer; 410 is for good."""
    status = result.status
    if status is None:
        return "dead" if result.hopeless else "again"
    if 200 <= status < 300:
        return "delivered"
    if status == 410:
        return "gone"
    return "again" if status in {408, 429} or status >= 500 else "dead"


def next_try(result: TryResult, tries: int, now: datetime, chance: float) -> datetime:
    """After so many tries; the chance is from 0 to 1. Not before the time that the receiver asked for."""
    gap = GAPS[min(max(tries, 1), len(GAPS)) - 1] * (1 - JITTER + 2 * JITTER * chance)
    wanted = retry_after(result.retry_after, now)
    return now + max(timedelta(seconds=gap), min(wanted, LONGEST))


def retry_after(value: str, now: datetime) -> timedelta:
    """Return the wait of a Retry-After header: seconds or an HTTP date (RFC 9110, 10.2.3); zero if it is neither."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return timedelta(seconds=min(int(value[:9]), 10**8)) if len(value) < 10 else LONGEST
    try:
        time = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return timedelta()
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return max(time - now, timedelta())
