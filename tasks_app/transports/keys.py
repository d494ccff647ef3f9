"""Callers by their API keys, cached for a moment."""

import time
from collections.abc import Awaitable, Callable

from a2a.errors import InvalidKey, Unauthenticated
from tasks_app.callers.access import Caller, FindCaller, digests
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Work

TRUSTED_SECONDS = 1.0
"""Seconds for which a caller is cached. A revoked key works no longer than this."""
KEY_SECONDS = 15.0
"""Seconds between two checks of the key of an open stream, of a call that waits, or of a connection that stays."""
LONGEST_KEY = 512
MAX_CACHED = 10_000

Key = str | tuple[str, ...]
"""An API key, or only its digests if a ticket stands for it."""

_cache: dict[Key, tuple[float, Caller]] = {}


async def authenticate(key: Key, departure: Callable[[], Awaitable[None]] | None = None) -> Caller:
    """Return the caller of an API key. Raises Unauthenticated, InvalidKey and CallerLeft."""
    if not key:
        raise Unauthenticated
    if isinstance(key, str) and len(key) > LONGEST_KEY:
        raise InvalidKey
    now = time.monotonic()
    entry = _cache.get(key)
    if entry is not None and entry[0] > now:
        return entry[1]
    caller: Caller | None = await bridge.ask(FindCaller(digests_of(key)), departure=departure)
    if caller is None:
        raise InvalidKey
    if len(_cache) >= MAX_CACHED:
        _cache.clear()
    _cache[key] = (now + TRUSTED_SECONDS, caller)
    return caller


def digests_of(key: Key) -> tuple[str, ...]:
    """Return the digests under which the key may be stored."""
    return digests(key) if isinstance(key, str) else key


async def is_valid(proof: Work[Caller | None]) -> bool:
    """Return whether the key of a call is still valid, by Call.find_again(). Raises errors of the database."""
    return await bridge.ask(proof) is not None
