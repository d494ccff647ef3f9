"""Values formatted for pages. Text from callers and agents is cut to a length, and its hidden characters are shown.

HTML escaping is left to the templates.
"""

import re
from datetime import UTC, datetime
from typing import Any

import orjson

PANE = 200_000
"""Characters that one pane of a page shows at most."""
NONE = "\N{EN DASH}"
"""The sign for an empty value, on every page."""

# These characters hide text or reverse it: control characters, direction marks, zero-width spaces, tags and half
# surrogates. The zero-width joiners are left alone, because some scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}\[\],:]|[^\s{}\[\],:"]+')


def reveal(text: str) -> str:
    """Return the text with its hidden characters written as JSON escapes."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))


def format_owner(row: Any) -> str:
    """Return the owner of a row, with its tenant."""
    return reveal(f"{row.owner.name} ({row.tenant.name})")


def indent_json(text: str, room: int = PANE) -> str:
    """Return JSON or JSON lines indented, cut soon after `room` characters. Any other text is returned unchanged."""
    if not is_json(text) and not all(is_json(line) for line in text.splitlines()):
        return text
    # Parsing into values would lose digits of long numbers and repeated keys, and fail on deep nesting. So the text is
    # only cut into tokens, and each token is copied as it is.
    pieces: list[str] = []
    size = depth = 0
    for match in _TOKEN.finditer(text):
        piece = match[0]
        if depth == 0 and pieces:
            pieces.append("\n")
        if piece in "{[":
            depth += 1
            piece += "\n" + "  " * depth
        elif piece in "}]":
            depth -= 1
            piece = "\n" + "  " * depth + piece
        elif piece == ",":
            piece += "\n" + "  " * depth
        elif piece == ":":
            piece += " "
        pieces.append(piece)
        size += len(piece)
        if size > room:
            break
    return "".join(pieces)


def is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


class Pane:
    """A part of a page with room for a limited number of characters, shared by all texts in it."""

    def __init__(self, room: int = PANE) -> None:
        self.room = room
        self.is_cut = False
        """True if a text did not fit."""

    def show_text(self, text: str) -> str:
        """Return the beginning of the text that fits, with hidden characters escaped, and reduce the room."""
        beginning = reveal(text[: self.room])
        if len(text) > self.room or len(beginning) > self.room:
            beginning, self.is_cut = beginning[: self.room], True
        self.room -= len(beginning)
        return beginning

    def show_json(self, text: str) -> str:
        """Do as `show_text`, and indent the text if it is JSON."""
        return self.show_text(indent_json(text, self.room))


def format_time(time: datetime | None) -> str:
    """Return a time in UTC to the millisecond. Its text sorts by time and compares with log lines."""
    return "" if time is None else time.astimezone(UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")


def format_duration(microseconds: int | None) -> str:
    """Return a duration with a fitting unit: 812 µs, 12.3 ms, 1.24 s, 3 min 5 s."""
    if microseconds is None:
        return ""
    if microseconds < 1_000:
        return f"{microseconds} µs"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.3g} ms" if microseconds < 999_500 else "1 s"
    if microseconds < 60_000_000:
        return f"{microseconds / 1_000_000:.3g} s"
    minutes, seconds = divmod(round(microseconds / 1_000_000), 60)
    return f"{minutes} min {seconds} s"


def format_size(count: int) -> str:
    """Return a number of bytes with a fitting unit: 812 B, 12.3 kB."""
    if count < 1_000:
        return f"{count} B"
    return f"{count / 1_000:,.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"
