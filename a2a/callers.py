"""The sender of a message, as agents see it."""

from msgspec import Struct


class Caller(Struct, frozen=True, kw_only=True):
    """An account that calls, and what the key that it called with may do."""

    name: str
    """The name of the account, which all of its keys share."""
    tenant: str
    scopes: frozenset[str] = frozenset()
    """The scopes of the key; `*` stands for all."""

    def may(self, *scopes: str) -> bool:
        """Return whether the caller has all of these scopes."""
        return "*" in self.scopes or self.scopes.issuperset(scopes)


NOBODY = Caller(name="", tenant="")
"""The caller of a run that no call asked for."""
