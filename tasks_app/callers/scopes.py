"""Scopes as data, and the rights that they grant.

An operation needs one right. Each right has a scope of this server and one of ACP, and a credential may have either: a
token with the scopes of ACP can call A2A, and a key with ours can call ACP.
"""

from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from a2a.language import Spelling

ALL = "*"
"""The scope that grants every right, and stands for the scopes of all agents."""


class Right(Struct, frozen=True):
    """The permission that an operation needs. Each of its scopes grants it, and so does ALL."""

    scope: str
    """The scope of this server."""
    acp: str
    """The scope of ACP."""
    granted_by: frozenset[str]
    """All scopes that grant it."""

    def spelled(self, spelling: Spelling) -> str:
        """Return the scope by its name in a spelling."""
        return self.acp if spelling == "acp" else self.scope


def _right(scope: str, acp: str, *others: str) -> Right:
    return Right(scope, acp, frozenset({ALL, scope, acp, *others}))


READ = _right("tasks:read", "acp:tasks:read")
WRITE = _right("tasks:write", "acp:tasks:write")
CANCEL = _right("tasks:cancel", "acp:tasks:cancel")
READ_WEBHOOKS = _right("tasks:read", "acp:notifications:receive")
WRITE_WEBHOOKS = _right("tasks:write", "acp:notifications:receive")
READ_STREAMS = _right("tasks:read", "acp:streams:read", "tasks:write", "acp:streams:write")
"""The right to follow shared streams. A caller that may take part in them may hear them too."""
WRITE_STREAMS = _right("tasks:write", "acp:streams:write")
IDENTIFY = _right("tasks:read", "acp:agent:identify", "tasks:write", "tasks:cancel")
"""The right that ACP asks of every caller. Each of our own scopes grants it."""


def scopes_of(right: Right | None, spelling: Spelling) -> tuple[str, ...]:
    """Return the scopes that a call needs for a right, by their names in a spelling. In ACP, every call needs one."""
    own = (right.spelled(spelling),) if right else ()
    return (IDENTIFY.acp, *own) if spelling == "acp" else own


OWN = {
    READ.scope: "Read tasks, follow them, read their webhooks, the extended card and the descriptions.",
    WRITE.scope: "Send messages, which begin and continue tasks, and register and remove webhooks.",
    CANCEL.scope: "Cancel tasks.",
}
"""The scopes of this server, with what they allow."""
ACP = {
    IDENTIFY.acp: "Be identified, which each call in ACP needs. It allows nothing by itself.",
    READ.acp: "Read tasks, follow them, read the extended card and the descriptions.",
    WRITE.acp: "Send messages, which begin and continue tasks.",
    CANCEL.acp: "Cancel tasks.",
    READ_STREAMS.acp: "Read the streams of ACP.",
    WRITE_STREAMS.acp: "Begin streams of ACP, and take part in them.",
    WRITE_WEBHOOKS.acp: "Register webhooks, read them and remove them.",
}
"""The scopes of ACP, with what they allow."""
_READING = frozenset({IDENTIFY.acp, READ.scope, READ.acp, READ_STREAMS.acp})
"""The scopes with which a credential can only read."""
_TWINS = {right.scope: right.acp for right in (READ, WRITE, CANCEL)}
_OWN_NAMES = {acp: scope for scope, acp in _TWINS.items()}


def has_all(scopes: frozenset[str], names: Iterable[str]) -> bool:
    """Return whether a credential with these scopes has all those that an agent names."""
    return ALL in scopes or all(name in scopes or _TWINS.get(name) in scopes for name in names)


def spelled(scope: str, spelling: Spelling) -> str:
    """Return a scope by its name in a spelling. A scope that has no name in it stays as it is."""
    return (_TWINS if spelling == "acp" else _OWN_NAMES).get(scope, scope)


def narrow(scopes: frozenset[str], most: frozenset[str]) -> frozenset[str]:
    """Return the scopes that are within others, by either of their names.

    Of two names for a scope the one of ACP grants less. It counts unless both sides have ours.
    """
    if ALL in most:
        return scopes
    if ALL in scopes:
        return most
    own = spell(most)
    within = (scope for scope in scopes if spelled(scope, "own") in own)
    return frozenset(scope if scope in most else spelled(scope, "acp") for scope in within)


def only_read(scopes: Iterable[str]) -> bool:
    """Return whether a credential with these scopes can only read. A scope of an agent counts as one that changes."""
    return all(scope in _READING for scope in scopes)


@lru_cache(maxsize=1024)
def spell(scopes: frozenset[str], spelling: Spelling = "own") -> frozenset[str]:
    """Return scopes by their names in a spelling."""
    return frozenset(spelled(scope, spelling) for scope in scopes)
