"""The preferences of a message: its sender, and the form of answer it prefers."""

import msgspec
from msgspec import Struct

from a2a.callers import Caller


class Preferences(Struct, frozen=True, omit_defaults=True):
    """The sender of a message and the preferred form of its answer, stored with the task until the next message."""

    accepts: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    caller: Caller | None = None
    """None in rows of earlier versions."""

    def json(self) -> str:
        """Return the stored form; empty for no preferences."""
        return "" if self == NO_PREFERENCES else msgspec.json.encode(self).decode()


NO_PREFERENCES = Preferences()


def preferences_of(stored: str) -> Preferences:
    """Return the value of the stored form."""
    return msgspec.json.decode(stored, type=Preferences) if stored else NO_PREFERENCES
