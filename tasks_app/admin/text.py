"""Foreign text made fit to look at: nothing in it hidden, nothing endless. Escaping is the templates' work."""

import re
from datetime import UTC, datetime

import orjson

PANE = 200_000
"""Characters that one pane of a page shows at most."""
NONE = "\N{EN DASH}"
"""Stands for an empty value, on every page."""

# Control characters, direction marks, zero-width spaces, tags, half surrogates: they hide text or turn it around.
# The zero-width joiners stay: scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}\[\],:]|[^\s{}\[\],:"]+')


def visible(text: str) -> str:
    """The text with hidden characters written out, as JSON would escape them."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text.replace("\r\n", "\n"))


def indented(text: str, room: int = PANE) -> str:
    """JSON, or JSON lines, indented token for token as it was, about as far as there is room; other text as it is."""
    if not is_json(text) and not all(is_json(line) for line in text.splitlines()):
        return text
    # Tokens, not values: numbers keep their digits, twin keys stay twins, and no depth is too deep.
    pieces: list[str] = []
    size = depth = 0
    for found in _TOKEN.finditer(text):
        mark = found[0]
        if depth == 0 and pieces:
            pieces.append("\n")
        if mark in "{[":
            depth += 1
            mark += "\n" + "  " * depth
        elif mark in "}]":
            depth -= 1
            mark = "\n" + "  " * depth + mark
        elif mark == ",":
            mark += "\n" + "  " * depth
        elif mark == ":":
            mark += " "
        pieces.append(mark)
        size += len(mark)
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
    """How much a part of a page may still show."""

    def __init__(self, room: int = PANE) -> None:
        self.room = room
        self.cut = False
        """Something did not fit."""

    def text(self, text: str) -> str:
        """As much of the text as fits, made visible."""
        shown = visible(text[: self.room])
        if len(text) > self.room or len(shown) > self.room:
            shown, self.cut = shown[: self.room], True
        self.room -= len(shown)
        return shown

    def json(self, text: str) -> str:
        """The same, indented if it is JSON."""
        return self.text(indented(text, self.room))


def moment(time: datetime | None) -> str:
    """A time in UTC to the millisecond, which sorts and can be compared with logs."""
    return "" if time is None else time.astimezone(UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")


def duration(microseconds: int | None) -> str:
    """As people say it: 812 µs, 12.3 ms, 1.24 s, 3 min 5 s."""
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


def size(count: int) -> str:
    """Bytes or characters: 812 B, 12.3 kB."""
    if count < 1_000:
        return f"{count} B"
    return f"{count / 1_000:,.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"
