"""Checks of the texts that operators give, which are the same at each of their doors."""

from collections.abc import Callable, Mapping
from typing import Any

from django.core.exceptions import ValidationError

from a2a.agents import registry
from tasks_app.callers import scopes

LONGEST_EMAIL = 254
"""Characters of an email address, at most, as of its column."""
LONGEST_URL = 2_000
"""Characters of a URL that an operator gives, at most, such as a redirect URI."""


def check_printable(text: str) -> None:
    """Check that a name or a reason is one line that a list can show. Raises ValidationError."""
    if not text.isprintable():
        raise ValidationError("must have printable characters only, without line breaks and tabs")


def check_scopes(text: str) -> None:
    """Check that a text can be scopes separated by spaces. Raises ValidationError."""
    if "," in text:  # A key with these scopes would open nothing, because a comma is part of the name of a scope.
        raise ValidationError("separate scopes by spaces, not by commas")
    check_printable(text)


def find_warnings(text: str) -> list[str]:
    """Return a sentence for each scope that opens nothing here.

    Agents of other processes are not known here, so none is refused.
    """
    every = {scopes.ALL, *scopes.OWN, *scopes.ACP}.union(*(agent.scopes for agent in registry))
    return [
        f"No operation asks for the scope {scope!r}, and no agent here: is the name right?"
        for scope in sorted(set(text.split()) - every)
    ]


CHECKS: Mapping[str, Callable[[str], None]] = {
    "principal": check_printable,
    "tenant": check_printable,
    "name": check_printable,
    "reason": check_printable,
    "scopes": check_scopes,
}
"""The check of each field of forms and members of bodies that has this name."""


def add_checks(fields: Mapping[str, Any]) -> None:
    """Add the check of its name to each of the fields, those of a form or of a serializer."""
    for name, check in CHECKS.items():
        if name in fields:
            fields[name].validators.append(check)
