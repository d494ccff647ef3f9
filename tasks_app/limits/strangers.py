"""Limits by network address, for calls whose caller is not known yet. They belong to this process alone: a refusal must
cost less than a look-up.

An address with too many wrong credentials may try no further ones. Credentials that were valid before are looked up
without a limit, because other callers may have the same address.
"""

import math
from time import monotonic

from django.conf import settings
from msgspec import Struct

from a2a.errors import TooManyCalls
from tasks_app.limits.buckets import TokenBuckets

failures = TokenBuckets()
"""The wrong credentials that each address may still try."""
calls = TokenBuckets()
"""The calls that each address may still make."""


class Barrier(Struct):
    """The time for which any address is refused because of its wrong credentials."""

    until: float = 0.0
    """Its end, on the monotonic clock. Most processes refuse no address."""


barrier = Barrier()


def refuses_any() -> bool:
    """Return whether any address is refused now."""
    return monotonic() < barrier.until


def check_calls(address: str, now: float | None = None) -> None:
    """Count a call from the address. Raises TooManyCalls."""
    most = settings.A2A_ADDRESS_CALLS
    if most and address and (wait := calls.take(address, most, monotonic() if now is None else now)):
        raise TooManyCalls(math.ceil(wait), limit="calls from this address in a minute", most=str(most))


def check_failures(address: str, now: float | None = None) -> None:
    """Check that the address may try a credential. Raises TooManyCalls."""
    if (most := settings.A2A_ADDRESS_FAILURES) and address:
        now = monotonic() if now is None else now
        _refuse(failures.wait(address, most, now), now, most)


def count_failure(address: str, now: float | None = None) -> None:
    """Count a wrong credential of the address. Raises TooManyCalls for one too many."""
    if (most := settings.A2A_ADDRESS_FAILURES) and address:
        now = monotonic() if now is None else now
        _refuse(failures.take(address, most, now), now, most)


def _refuse(wait: float, now: float, most: int) -> None:
    if wait:
        barrier.until = max(barrier.until, now + wait)
        raise TooManyCalls(math.ceil(wait), limit="wrong credentials from this address in a minute", most=str(most))
