"""Strict JSON, with limits on depth and size. They are checked on the bytes: a walk through values costs far more."""

import re
from typing import Any

import orjson

from a2a.errors import InvalidParams, InvalidRequest, ParseError

MAX_DEPTH = 64
"""Levels of objects and arrays in one body."""
MAX_NODES = 50_000
"""Values in one body. A walk through objects and arrays costs a hundred times as much as receiving their bytes."""

# Two backslashes are one escaped backslash. The escape of NUL follows an even number of them.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*+\\u0000")
WINDOW = 65_536
"""Bytes that are searched at once. Python runs no other thread meanwhile."""
_BEGINNING = 4_096
"""Bytes at the beginning of a body with too many values in which its depth is checked, too."""
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def read_json(body: bytes) -> Any:
    """Parse strict JSON: UTF-8 without a byte order mark, NaN or lone surrogates.

    Raises ParseError if it is malformed, and InvalidRequest above MAX_DEPTH or MAX_NODES.
    """
    if count_values(body, MAX_NODES) > MAX_NODES:
        if _without_pairs(body[:_BEGINNING]).count(b"[") > MAX_DEPTH:
            raise _too_deep()
        raise InvalidRequest(detail=f"the JSON may have {MAX_NODES} values; send files and tables as text or as bytes")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        # The message of orjson for more than 1,024 levels.
        if "depth limit" in str(error):
            raise _too_deep() from None
        raise ParseError(detail=_fault(error)) from None
    # The slow check is only for bodies with enough brackets; most have fewer.
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _without_pairs(body):
        raise _too_deep()
    return value


def _fault(error: orjson.JSONDecodeError) -> str:
    """Return what is wrong with a body, and where. It holds no characters of the body."""
    if "UTF-8: surrogates" in error.msg:
        return "it is not UTF-8"  # orjson does not look for the place.
    if not error.doc:
        return "it is empty"
    return f"{error.msg}, at line {error.lineno}, column {error.colno}"


def holds_nul(body: bytes) -> bool:
    """Return whether a string of the JSON contains U+0000."""
    return b"\\u0000" in body and _NUL.search(body) is not None


def count_values(body: bytes, most: int) -> int:
    """Return an upper bound of the number of values in the JSON, or 0 if it is below the limit."""
    if len(body) <= most or _count_marks(body) < most:
        return 0
    # Many of the marks may be part of strings.
    return _count_marks(_outside_strings(body)) + 1


def _count_marks(body: bytes) -> int:
    """Return the number of bytes that may begin another value."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _without_pairs(body: bytes) -> bytes:
    """Return the brackets that remain after the innermost pairs are removed MAX_DEPTH times.

    None remain if the JSON is valid and not too deep.
    """
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
    """Return the error for params that contain U+0000, the one character that PostgreSQL cannot store, or None."""
    path = path_of_nul(params)
    return None if path is None else InvalidParams((path or "params", "must not hold the character U+0000"))


def _too_deep() -> InvalidRequest:
    return InvalidRequest(detail=f"the JSON is nested deeper than {MAX_DEPTH} levels")


def deeper_than(value: Any, limit: int) -> bool:
    """Return whether a JSON value has more levels of objects and arrays than the limit."""
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
    """Return the path of the first U+0000, in a key or in a string; None if there is none.

    The search is recursive: read_json has limited the depth.
    """
    steps = _steps_to_nul(value)
    return None if steps is None else "".join(reversed(steps)).removeprefix(".")


def _steps_to_nul(value: Any) -> list[str] | None:
    """Return the steps of the path, the last one first; None if there is no U+0000.

    The path is built on the way back, so values without the character cost nothing.
    """
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
