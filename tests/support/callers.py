"""Callers, found by their keys as the server finds them."""

from collections.abc import Sequence

from tasks_app.callers.access import Caller, FindCaller, digests


def find_callers(keys: Sequence[str]) -> list[Caller | None]:
    """Return the callers; None for a key that is unknown, revoked or expired."""
    found = FindCaller.do_many([FindCaller(digests(key)) for key in keys])
    return [caller if isinstance(caller, Caller) else None for caller in found]


def find_caller(key: str) -> Caller | None:
    """Return the caller; None if the key is unknown, revoked or expired."""
    return find_callers([key])[0]
