"""Rules of callers: which agents, skills, phases of a workflow, batch operations and namespaces they may use, as data.

The rules of a principal are those of its rows in Permission and those of its tenant. They are stored beside both as
JSON, so that the statement that finds a caller reads them too.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, get_args

import msgspec
from msgspec import Struct

from a2a.options import NAME, NAME_WORDS
from a2a.workflows import PHASES
from tasks_app.callers.wrong_values import WrongValue
from tasks_app.models import Principal

Kind = Literal["agent", "skill", "phase", "operation", "namespace"]
"""The kind of thing that a rule is about. A phase is one of a workflow, an operation one of a batch, a namespace one of
the memory."""
KINDS: tuple[Kind, ...] = get_args(Kind)
LONGEST = 128
"""Characters of the longest pattern."""


class Rule(Struct, frozen=True, array_like=True):
    """An effect on all names of a kind that match a pattern."""

    allows: bool
    kind: Kind
    pattern: str
    """A name, or the beginning of names and an asterisk."""

    def matches(self, name: str) -> bool:
        if self.pattern.endswith("*"):
            return name.startswith(self.pattern[:-1])
        return name == self.pattern


Rules = tuple[Rule, ...]


def permit(rules: Rules, kind: Kind, name: str) -> bool:
    """Return whether the rules permit a name of a kind.

    Without a rule of the kind every name is permitted. With one, a name needs a rule that allows it and none that
    denies it.
    """
    of_kind = [rule for rule in rules if rule.kind == kind]
    matching = [rule.allows for rule in of_kind if rule.matches(name)]
    return not of_kind or (bool(matching) and all(matching))


def check_pattern(kind: Kind, pattern: str) -> None:
    """Check that a text can be a pattern of a kind. Raises WrongValue."""
    if not (1 <= len(pattern) <= LONGEST and pattern.isprintable()):
        raise WrongValue("pattern", f"a pattern must have 1 to {LONGEST} printable characters")
    if "*" in pattern[:-1]:
        raise WrongValue(
            "pattern", f"a pattern is a name, or the beginning of names and one asterisk at its end: {pattern!r}"
        )
    # A rule that denies `story,echo` would deny neither agent, and nothing would say so.
    if kind == "agent" and pattern != "*" and not NAME.fullmatch(pattern.removesuffix("*")):
        raise WrongValue("pattern", f"no agent can be called {pattern!r}: a name has {NAME_WORDS}, one at a time")
    if kind == "phase" and not any(Rule(True, kind, pattern).matches(phase) for phase in PHASES):
        raise WrongValue("pattern", f"no phase matches {pattern!r}: the phases are {', '.join(PHASES)}")


def rules_of(principal: Principal) -> Rules:
    """Return the rules of a principal, whose tenant must be loaded."""
    return decode_rules(principal.rules) + decode_rules(principal.tenant.rules)


def encode_rules(rules: Iterable[Rule]) -> str | None:
    """Return rules as they are stored; None for none."""
    encoded = msgspec.json.encode(tuple(rules)).decode()
    return None if encoded == "[]" else encoded


@lru_cache(maxsize=1024)
def decode_rules(stored: str | None) -> Rules:
    """Return rules from the form in which they are stored. Raises msgspec.DecodeError."""
    return msgspec.json.decode(stored, type=Rules) if stored else ()
