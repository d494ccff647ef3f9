"""The sender of a message, as agents see it."""

from msgspec import Struct


class Caller(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The principal behind a message, and the scopes of the key it used."""

    name: str
    """The name of the principal, which all of its keys share."""
    tenant: str
    scopes: frozenset[str] = frozenset()
    """The scopes of the key. `*` stands for all scopes."""
    agents: frozenset[str] | None = None
    """The agents that the credential is valid for; None for all agents of the server."""

    def may(self, *scopes: str) -> bool:
        """Return whether the caller has all of these scopes."""
        return "*" in self.scopes or self.scopes.issuperset(scopes)


UNKNOWN_CALLER = Caller(name="", tenant="")
"""The caller of a run whose message has no recorded sender."""
