"""The way of this room to the database."""

from collections.abc import Callable
from typing import TypeVar

from django.conf import settings

from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do

R = TypeVar("R")


async def ask(function: Callable[[], R]) -> R:
    """Return the result of a function on the write lane."""
    return await bridge.ask(Do(function), settings.A2A_LEASE_SECONDS)
