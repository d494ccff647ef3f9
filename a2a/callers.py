"""Who sent a message, as agents see it."""

from msgspec import Struct


class Caller(Struct, frozen=True, kw_only=True):
    """An account that calls, and what the key that it called with may do."""

    name: str
    """Of the account: all of its keys have the same."""
    tenant: str
    scopes: frozenset[str] = frozenset()
    """Of the key; with `*` it may do everything."""

    def may(self, *scopes: str) -> bool:
        """Return whether the caller has all of these scopes."""
        return "*" in self.scopes or self.scopes.issuperset(scopes)


NOBODY = Caller(name="", tenant="")
"""The caller of a run that nobody asked for."""
