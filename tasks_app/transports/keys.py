"""Callers by the evidence in their requests, cached for a moment."""

import time
from collections.abc import Awaitable, Callable

from msgspec import Struct

from a2a.errors import ExpiredKey, InvalidKey, Unauthenticated
from a2a.language import Spelling
from tasks_app import clock
from tasks_app.callers import access
from tasks_app.callers.access import Caller, check_right
from tasks_app.callers.last_use import last_uses
from tasks_app.callers.schemes import Evidence, credentials, scheme_of
from tasks_app.callers.scopes import Right
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Work
from tasks_app.limits import strangers

TRUSTED_SECONDS = 1.0
"""Seconds for which a caller is cached. A revoked key works no longer than this."""
KEY_SECONDS = 15.0
"""Seconds between two checks of the key of an open stream, of a call that waits, or of a connection that stays."""
MAX_CACHED = 10_000
MAX_SIZE = 16_000_000
"""Characters of the evidence that is cached. A token has up to 8,192, and a header with a certificate twice as many."""

Proof = Work[Caller | None]
"""The work item that finds a caller, also later again."""
CheckAgain = Callable[[], Awaitable[None]]
"""Checks the caller of a call again, as check_again() does."""


class Recognition(Struct, frozen=True):
    """A caller, and the proof that finds it again."""

    caller: Caller
    proof: Proof
    ends: float
    """The time until which it is trusted, of the monotonic clock."""


class Recognitions(dict[Evidence | Proof, Recognition]):
    """A cache of recognitions by what led to them. It is emptied when it is full."""

    size = 0
    """Characters of all evidence that was added since the cache was empty."""

    def keep(self, subject: Evidence | Proof, recognition: Recognition) -> None:
        """Cache a recognition in the place of an earlier one."""
        if subject not in self:
            size = _size_of(subject)
            if len(self) >= MAX_CACHED or self.size + size > MAX_SIZE:
                self.clear()
            self.size += size
        self[subject] = recognition

    def clear(self) -> None:
        super().clear()
        self.size = 0


_cache = Recognitions()


async def authenticate(
    evidence: Evidence | None, origin: Callable[[], str], departure: Callable[[], Awaitable[None]] | None = None
) -> Recognition:
    """Return the caller that the evidence leads to. Raises Unauthenticated, InvalidKey, TooManyCalls and CallerLeft.

    `origin` returns the address for limits of strangers; empty if it is not known.
    """
    if evidence is None:
        raise Unauthenticated(credentials())
    recognition = _cache.get(evidence)
    if recognition is not None and recognition.ends > time.monotonic():
        return recognition
    if recognition is None:
        # Evidence that was valid before is looked up without a limit: its caller may share the address with others.
        strangers.check_failures(origin())
    try:
        return await _find(evidence, await _prove(evidence), departure)
    except InvalidKey:
        _cache.pop(evidence, None)
        strangers.count_failure(origin())
        raise


async def _prove(evidence: Evidence) -> Proof:
    """Return the work item that finds the caller. Raises InvalidKey, which counts in floods, as an unknown key does."""
    try:
        scheme = scheme_of(evidence)
        if scheme is None:
            raise InvalidKey
        return await scheme.prove(evidence)
    except InvalidKey as error:
        if not isinstance(error, ExpiredKey):
            access.misses.count(1)
        raise


def refuter_of(evidence: Evidence) -> Callable[[Evidence], bool] | None:
    """Return a function that says whether evidence is not valid, as far as this process can tell without a look-up;
    None for a scheme where it never can."""
    scheme = scheme_of(evidence)
    return _refute_any if scheme is None else scheme.refutes


def is_looked_up(evidence: Evidence) -> bool:
    """Return whether the evidence may be stored, and can be looked up together with other evidence."""
    scheme = scheme_of(evidence)
    if scheme is None or scheme.lacks is None:
        return False
    return scheme.refutes is None or not scheme.refutes(evidence)


def _refute_any(_: Evidence) -> bool:
    return True


def is_cached(evidence: Evidence) -> bool:
    """Return whether the evidence led to a caller before."""
    return evidence in _cache


async def find_again(proof: Proof, departure: Callable[[], Awaitable[None]] | None = None) -> Recognition:
    """Return the caller of a proof, without further evidence. Raises InvalidKey and CallerLeft."""
    recognition = _cache.get(proof)
    if recognition is not None and recognition.ends > time.monotonic():
        return recognition
    return await _find(proof, proof, departure)


def rest_of(expires_at: float | None, most: float) -> float:
    """Return the seconds until evidence ends, between 0 and `most`."""
    return most if expires_at is None else min(most, max(0.0, expires_at - clock.now().timestamp()))


def has_ended(expires_at: float | None) -> bool:
    """Return whether evidence has reached its end, which no look into the database can change."""
    return rest_of(expires_at, 1.0) <= 0


async def is_valid(proof: Proof) -> bool:
    """Return whether the proof of a call still leads to a caller. Raises errors of the database."""
    return await _ask(proof) is not None


async def check_again(proof: Proof, owner_id: int, right: Right, spelling: Spelling) -> None:
    """Check that the proof of a call still leads to a caller of this owner with the right. A call ends when its scope
    is taken away, and when an operator links its user to another principal.

    Raises InvalidKey, MissingScope and errors of the database.
    """
    caller = await _ask(proof)
    if caller is None or caller.owner_id != owner_id:
        raise InvalidKey
    check_right(caller, right, spelling)


async def _ask(proof: Proof) -> Caller | None:
    """Return the caller of a proof; None if it leads to none any more. Raises errors of the database."""
    try:
        return await bridge.ask(proof)
    except ExpiredKey:
        return None


async def _find(
    subject: Evidence | Proof, proof: Proof, departure: Callable[[], Awaitable[None]] | None
) -> Recognition:
    """Look the caller up, and trust the result for a moment, but not after the evidence expires."""
    now = time.monotonic()
    caller: Caller | None = await bridge.ask(proof, departure=departure)
    if caller is None:
        raise InvalidKey
    if caller.key_id is not None:
        last_uses.note(caller.key_id)
    recognition = Recognition(caller, proof, now + rest_of(caller.expires_at, TRUSTED_SECONDS))
    _cache.keep(subject, recognition)
    return recognition


def _size_of(subject: Evidence | Proof) -> int:
    if not isinstance(subject, Evidence):
        return 0  # Digests and names, which are short.
    return len(subject.secret) if isinstance(subject.secret, str) else sum(map(len, subject.secret))
