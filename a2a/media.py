"""Media types: which ones an agent takes and gives, with `text/*` and `*/*`; parameters do not count."""

import re
from collections.abc import Iterable

from msgspec import UNSET, Struct

from a2a.types import Part

DEFAULT = ("text/plain", "application/json")
"""What agents take and give that say nothing about it: text and data, no files."""
ANYTHING = "*/*"

_NAME = r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}"
_MODE = re.compile(rf"\*/\*|{_NAME}/(?:\*|{_NAME})")
_LOOSE = {"*": ANYTHING, "text": "text/plain"}
"""Spellings that callers use: upstream's own samples say `text`."""


class Modes(Struct, frozen=True):
    """A list of media types and ranges, made ready to be asked."""

    names: frozenset[str]
    mains: frozenset[str]
    """Main types of which every subtype is meant."""
    anything: bool

    def has(self, media_type: str) -> bool:
        """Whether a media type, in any spelling, is among them."""
        if self.anything or media_type in self.names:
            return True
        # A part is of one type: a range would be whatever is wanted.
        return "*" not in (mode := essence(media_type)) and self._meets(mode)

    def __str__(self) -> str:
        ranges = [f"{main}/*" for main in self.mains] + ([ANYTHING] if self.anything else [])
        return ", ".join(sorted([*self.names, *ranges]))

    def meet(self, wanted: Iterable[str]) -> bool:
        """Whether there is something that is both among these and among those, which may be ranges as well."""
        return any(self._meets(essence(mode)) for mode in wanted)

    def _meets(self, mode: str) -> bool:
        main, _, sub = mode.partition("/")
        if mode == ANYTHING or mode in self.names or main in self.mains:
            return True
        if sub == "*":
            return self.anything or any(name.startswith(f"{main}/") for name in self.names)
        return self.anything and bool(sub)


def modes(values: Iterable[str]) -> Modes:
    """Raises nothing: what is no media type meets nothing."""
    found = {essence(value) for value in values}
    ranges = {value for value in found if value.endswith("/*")}
    return Modes(
        names=frozenset(found - ranges),
        mains=frozenset(value[:-2] for value in ranges if value != ANYTHING),
        anything=ANYTHING in ranges,
    )


def is_mode(value: object) -> bool:
    """Whether an agent may name it: a media type or a range, lower case, without parameters."""
    return isinstance(value, str) and _MODE.fullmatch(value) is not None


def essence(text: str) -> str:
    """The type and subtype, in lower case."""
    name = text.partition(";")[0].strip().lower()
    return _LOOSE.get(name, name)


def media_type_of(part: Part) -> str:
    """What a part says it is, else what its kind is."""
    if part.media_type:
        return part.media_type
    if part.text is not None:
        return "text/plain"
    return "application/json" if part.data is not UNSET else "application/octet-stream"
