"""Texts of Slack: read from its markup, escaped for it, and cut into messages of a length that it takes."""

import re

PIECE = 3_900
"""Characters of one message, escaped. Slack refuses an edit with more than 4,000."""
PIECES = 8
"""Messages of one reply at most."""
MORE = " …"
"""The end of a text that is still being written."""
# Slack escapes < within markup. A search that ends there is linear, also in a text that has no > at all.
_MENTION = re.compile(r"<([@#!])([^<>|]++)(?:\|([^<>]*+))?>")
_LINK = re.compile(r"<((?:https?|mailto|tel):[^<>|]++)(?:\|([^<>]*+))?>")


def read(text: str, bot_user_id: str = "") -> str:
    """Return the words of a message, without the mention of the bot itself."""
    if bot_user_id:
        text = re.sub(rf"<@{re.escape(bot_user_id)}(?:\|[^<>]*+)?>", "", text)
    text = _MENTION.sub(_name, text)
    text = _LINK.sub(lambda match: f"{match[2]} ({match[1]})" if match[2] and match[2] != match[1] else match[1], text)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(entity, character)
    return text.strip()


def _name(match: re.Match[str]) -> str:
    sign = "#" if match[1] == "#" else "@"
    name = match[3] or match[2].partition("^")[0]
    return f"{sign}{name.lstrip('@#')}"


def escape(text: str) -> str:
    """Return the text so that nothing in it mentions a person or a channel, or is a link with another label."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def preview(text: str) -> str:
    """Return the first message of a reply that is still being written."""
    return escape(_cut(text, PIECE - len(MORE))[0]) + MORE


def split(text: str) -> list[str]:
    """Return the messages of a whole reply. A text beyond PIECES messages is cut, and its last message says so."""
    pieces: list[str] = []
    rest = text
    while rest and len(pieces) < PIECES:
        piece, rest = _cut(rest, PIECE)
        pieces.append(escape(piece))
    if rest:
        hint = f"_The reply has {len(text):,} characters; the last {len(rest):,} are left out. Ask for a shorter one._"
        pieces.append(hint)
    return pieces or ["_(no text)_"]


def _cut(text: str, most: int) -> tuple[str, str]:
    """Return the longest beginning of a text that fits when it is escaped, and the rest. Cut at a line or a word."""
    size, end = 0, 0
    for end, character in enumerate(text):  # noqa: B007  # the place is used after the loop
        size += {"&": 5, "<": 4, ">": 4}.get(character, 1)
        if size > most:
            break
    else:
        return text, ""
    for separator in ("\n", " "):
        place = text.rfind(separator, end // 2, end)
        if place > 0:
            return text[:place], text[place + 1 :]
    return text[:end], text[end:]
