"""Tokens of messages, as limits count them: an estimate that needs no model."""

import orjson
from msgspec import UNSET

from a2a.types import Message, Part

TOKEN_BYTES = 4
"""Bytes of UTF-8 that count as one token. Models of English texts have about so many on average."""


def tokens_of(size: int) -> int:
    """Return the number of tokens of that many bytes, rounded up."""
    return -(-size // TOKEN_BYTES)


def count_tokens(message: Message) -> int:
    """Return the number of tokens of a message: of its texts, and of its data as JSON. Files do not count."""
    return tokens_of(sum(map(_size_of, message.parts)))


def _size_of(part: Part) -> int:
    if part.text is not None:
        return len(part.text.encode())
    return 0 if part.data is UNSET else len(orjson.dumps(part.data))
