"""Checks of the environment's variables."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register  # noqa: A004  # as Django names it


@register()
def check_names(**_: Any) -> list[CheckMessage]:
    """Check the names of variables.

    a2a.W008: a variable that begins with `A2A_`, is no setting, and resembles one. It changes nothing.
    """
    return [
        Warning(f"{name} is not a setting, and changes nothing.", hint=f"Did you mean {like}?", id="a2a.W008")
        for name, like in settings.MISSPELLINGS.items()
    ]
