"""Texts of others as a terminal may get them: without characters that move its cursor, colour it or turn lines around.

The client prints with it what agents say, and the commands of operators what callers have sent.
"""

import json
import unicodedata

_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"


def safe_text(text: str) -> str:
    """Return the text with a sign in place of each character that a terminal would not show."""
    return "".join(
        letter if letter in "\n\t" or _is_visible(letter) else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def safe_json(text: str) -> str:
    """Return JSON whose control characters are escaped. JSON itself escapes only some, and has them only in strings."""
    if text.isprintable():  # nearly every line, and long ones quickly
        return text
    return "".join(letter if letter == "\n" or _is_visible(letter) else json.dumps(letter)[1:-1] for letter in text)


def _is_visible(letter: str) -> bool:
    """Return whether a letter may reach a terminal: also spaces of other scripts, and what joins emoji and letters."""
    return letter.isprintable() or unicodedata.category(letter) == "Zs" or letter in _JOINERS
