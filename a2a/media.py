"""Media types that an agent accepts and returns, with ranges such as `text/*` and `*/*`. Parameters are ignored."""

import re
from collections.abc import Iterable

from msgspec import UNSET, Struct

from a2a.types import Part

DEFAULT = ("text/plain", "application/json")
"""Media types of agents that declare none: text and data, no files."""
ANYTHING = "*/*"
"""The range that matches every media type (RFC 9110, 12.5.1)."""

_NAME = r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}"
_MODE = re.compile(rf"\*/\*|{_NAME}/(?:\*|{_NAME})")
_LOOSE = {"*": ANYTHING, "text": "text/plain"}
"""Informal spellings in use: the samples of the A2A project say `text`."""


class Modes(Struct, frozen=True):
    """A list of media types and ranges, indexed for look-ups."""

    names: frozenset[str]
    mains: frozenset[str]
    """Main types, such as `text`, of which every subtype matches."""
    anything: bool
    """True if every media type matches."""

    def has(self, media_type: str) -> bool:
        """Return whether a media type, in any spelling, matches."""
        if self.anything or media_type in self.names:
            return True
        # The media type of a part is one type. A range in its place would match every preference.
        return "*" not in (mode := essence(media_type)) and self._meets(mode)

    def __str__(self) -> str:
        ranges = [f"{main}/*" for main in self.mains] + ([ANYTHING] if self.anything else [])
        return ", ".join(sorted([*self.names, *ranges]))

    def meet(self, others: Iterable[str]) -> bool:
        """Return whether some media type matches both lists. The others may be ranges."""
        return any(self._meets(essence(mode)) for mode in others)

    def _meets(self, mode: str) -> bool:
        main, _, sub = mode.partition("/")
        if mode == ANYTHING or mode in self.names or main in self.mains:
            return True
        if sub == "*":
            return self.anything or any(name.startswith(f"{main}/") for name in self.names)
        return self.anything and bool(sub)


def modes(values: Iterable[str]) -> Modes:
    """Index media types and ranges. Never raises: a malformed media type matches nothing."""
    names = {essence(value) for value in values}
    ranges = {value for value in names if value.endswith("/*")}
    return Modes(
        names=frozenset(names - ranges),
        mains=frozenset(value[:-2] for value in ranges if value != ANYTHING),
        anything=ANYTHING in ranges,
    )


def is_mode(value: object) -> bool:
    """Return whether an agent may declare the value: a media type or a range, lower case, without parameters."""
    return isinstance(value, str) and _MODE.fullmatch(value) is not None


def essence(text: str) -> str:
    """Return type and subtype in lower case, without parameters."""
    name = text.partition(";")[0].strip().lower()
    return _LOOSE.get(name, name)


def media_type_of(part: Part) -> str:
    """Return the declared media type of a part, or the default of its kind."""
    if part.media_type:
        return part.media_type
    if part.text is not None:
        return "text/plain"
    return "application/json" if part.data is not UNSET else "application/octet-stream"
