"""Strict JSON. Its depth, the number of its values and U+0000 are looked for in the bytes, before any walk."""

import re
from typing import Any

import orjson

from a2a.errors import InvalidParams, InvalidRequest, ParseError

MAX_DEPTH = 64
MAX_NODES = 50_000
"""Values of one body, at most. Objects and arrays cost a hundred times as much to walk as their bytes to receive."""

# An even number of backslashes before it stands for themselves.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*+\\u0000")
WINDOW = 65_536
"""Bytes that are searched at once. Python runs no other thread meanwhile."""
_BEGINNING = 4_096
"""Bytes of a body with too many values that are looked at for what else is wrong with it."""
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def read_json(body: bytes) -> Any:
    """Strict JSON no deeper than MAX_DEPTH, of MAX_NODES values: no NaN, no lone surrogates, UTF-8 without a byte order
    mark. Depth and number are counted in the bytes: walking costs a hundred times as much."""
    if _nodes(body) > MAX_NODES:
        if _without_pairs(body[:_BEGINNING]).count(b"[") > MAX_DEPTH:
            raise _too_deep()
        raise InvalidRequest(detail=f"the JSON may have {MAX_NODES} values; send files and tables as text or as bytes")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        # What orjson says beyond 1,024 levels.
        if "depth limit" in str(error):
            raise _too_deep() from None
        raise ParseError from None
    # Most bodies have fewer brackets than levels are allowed.
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _without_pairs(body):
        raise _too_deep()
    return value


def holds_nul(body: bytes) -> bool:
    """Return whether a string of the JSON holds U+0000."""
    return b"\\u0000" in body and _NUL.search(body) is not None


def _nodes(body: bytes) -> int:
    """Return how many values the JSON has, or some number below the limit."""
    if len(body) <= MAX_NODES or _marks(body) < MAX_NODES:
        return 0
    # Most of them may stand in texts.
    return _marks(_outside_strings(body)) + 1


def _marks(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _without_pairs(body: bytes) -> bytes:
    """Return the brackets that are left when the innermost pairs were taken away MAX_DEPTH times: none, if the JSON is
    valid and not too deep."""
    brackets = _outside_strings(body).translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    return brackets


def _outside_strings(body: bytes) -> bytes:
    """Return what stands outside of strings. A string without an end reaches to the end of the body."""
    return b"".join(_without_escapes(body).split(b'"')[::2])


def _without_escapes(body: bytes) -> bytes:
    """Return the body without escaped backslashes and escaped quotes, window by window, so that other threads run in
    between."""
    if b"\\" not in body:
        return body
    pieces, place = [], 0
    while place < len(body):
        window = body[place : place + WINDOW]
        if (len(window) - len(window.rstrip(b"\\"))) % 2:
            window = body[place : place + WINDOW + 1]  # An escape is not cut in two.
        place += len(window)
        # Pairs of backslashes first: of those that are left, each escapes what is behind it.
        pieces.append(window.replace(rb"\\", b"").replace(rb"\"", b""))
    return b"".join(pieces)


def nul_in(params: Any) -> InvalidParams | None:
    """Return the refusal of params that hold NUL, the one character that PostgreSQL cannot store; None without it."""
    path = path_of_nul(params)
    return None if path is None else InvalidParams((path or "params", "must not hold the character U+0000"))


def _too_deep() -> InvalidRequest:
    return InvalidRequest(detail=f"the JSON is nested deeper than {MAX_DEPTH} levels")


def deeper_than(value: Any, limit: int) -> bool:
    """Whether JSON is nested deeper than so many levels."""
    level = [value]
    for _ in range(limit):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def path_of_nul(value: Any) -> str | None:
    """Return where the first U+0000 is, in a key or a string; the depth is bounded by read_json."""
    steps = _steps_to_nul(value)
    return None if steps is None else "".join(reversed(steps)).removeprefix(".")


def _steps_to_nul(value: Any) -> list[str] | None:
    """Return the last step first: a path is put together only for what is found."""
    if isinstance(value, str):
        return [] if "\0" in value else None
    if isinstance(value, dict):
        for key, child in value.items():
            if "\0" in key:
                return []
            if (steps := _steps_to_nul(child)) is not None:
                return [*steps, f".{key}"]
    elif isinstance(value, list):
        for index, child in enumerate(value):
            if (steps := _steps_to_nul(child)) is not None:
                return [*steps, f"[{index}]"]
    return None
