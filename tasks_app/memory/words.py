"""The words of an entry, by which a search finds it, and the checks of a value before it is stored."""

from collections.abc import Iterator
from typing import Any

import orjson

from a2a.errors import InvalidParams


def encode(data: Any) -> str:
    """Return a value as stored JSON. Raises InvalidParams for a value that is not JSON, or has a zero character."""
    try:
        text = orjson.dumps(data).decode()
    except (TypeError, ValueError) as error:
        raise InvalidParams(("data", f"must be a JSON value: {error}")) from None
    if "\\u0000" in text and any("\0" in word for word in _texts(data)):
        raise InvalidParams(("data", "must not have the character U+0000"))
    return text


def words_of(key: str, data: Any) -> str:
    """Return the key and the texts in a value, in lower case."""
    return "\n".join([key, *_texts(data)]).casefold()


def _texts(data: Any) -> Iterator[str]:
    """Yield all strings in a value, the names of members included, without recursion."""
    rest = [data]
    while rest:
        match rest.pop():
            case str() as text:
                yield text
            case dict() as members:
                yield from (str(name) for name in members)
                rest.extend(reversed(members.values()))
            case list() | tuple() as items:
                rest.extend(reversed(items))
