"""Checking params: types by a msgspec struct, the rest by small readers; every failure names its field."""

import base64
import binascii
import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from a2a.errors import InvalidParams
from a2a.types import Json

# The library's sentences, and ours.
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_AT = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_SNAKE = re.compile(r"_([a-z0-9])")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_FRACTION = re.compile(r"\.(\d{1,9})")
_NUMERAL = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
INT32 = 2**31 - 1
"""The largest value of protobuf's int32."""
Whole = int | float | str
"""A whole number in JSON, where 1.0 is one; ProtoJSON takes "1", "1.0" and "1e0" as well."""


def check(params: Any, struct: type[Struct]) -> Json:
    """Return the params unchanged. Members that the struct lacks are ignored.

    Raises InvalidParams unless they are an object whose members have the types of the struct.
    """
    if params is UNSET:
        raise InvalidParams(("params", "is required"))
    if not isinstance(params, dict):
        kind = "an array" if isinstance(params, list) else "a value of another type"
        raise InvalidParams(("params", f"must be an object with named members, not {kind}"))
    try:
        msgspec.convert(params, struct)
    except msgspec.ValidationError as error:
        raise InvalidParams(_violation(str(error))) from None
    return params


def or_empty(params: Any) -> Any:
    """The params of a method that may leave them out: absent or null is none."""
    return {} if params is UNSET or params is None else params


def _violation(sentence: str) -> tuple[str, str]:
    found = _AT.search(sentence)
    path = found["path"] if found else ""
    text = sentence[: found.start()] if found else sentence
    if missing := _MISSING.match(text):
        return (f"{path}.{missing['name']}" if path else missing["name"], "is required")
    return (path or "params", text.replace("`", ""))


def camel_names(members: Json) -> Json:
    """Turn snake_case names of members into camelCase: ProtoJSON parsers must take both."""
    if "_" not in "".join(members):
        return members
    return {_SNAKE.sub(lambda match: match[1].upper(), name): value for name, value in members.items()}


def read_whole(value: Whole | None, field: str, minimum: int = 0, maximum: int = INT32) -> int | None:
    """Return a whole number within bounds, however JSON writes it. Raises InvalidParams."""
    if value is None:
        return None
    number = read_number(value) if isinstance(value, str) else value
    if number is None or number % 1:
        raise InvalidParams((field, "must be an integer"))
    if not minimum <= number <= maximum:
        bounds = f"at least {minimum}" if number < minimum and maximum == INT32 else f"from {minimum} to {maximum}"
        raise InvalidParams((field, f"must be {bounds}, not {str(value)[:20]}"))
    return int(number)


def read_number(text: str) -> float | None:
    """Return the number that a text is in JSON; None if it is none."""
    return float(text) if _NUMERAL.fullmatch(text) else None


def read_time(value: str | None, field: str) -> datetime | None:
    """An RFC 3339 time with a zone, 0 to 9 digits of a second's fraction."""
    if value is None:
        return None
    # Python takes weeks and more for a time, but only 3 or 6 digits of a fraction.
    if _TIME.fullmatch(value):
        exact = _FRACTION.sub(lambda match: "." + match[1][:6].ljust(6, "0"), value.upper())
        with suppress(ValueError, OverflowError):  # the second from the edges of the first and last year
            return datetime.fromisoformat(exact).astimezone(UTC)
    raise InvalidParams((field, "must be a time such as 2026-03-02T09:15:05.250Z"))


def write_time(time: datetime) -> str:
    """A time as all dialects send it: UTC, milliseconds, Z."""
    if time.tzinfo is not UTC:
        time = time.astimezone(UTC)
    return time.isoformat(timespec="milliseconds")[:23] + "Z"


def read_base64(text: str, field: str) -> bytes:
    """Base64, standard or URL-safe, padded or not."""
    try:
        plain = text.translate(_STANDARD).rstrip("=")
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidParams((field, "must be base64")) from None


_STANDARD = str.maketrans("-_", "+/")


def write_base64(content: bytes) -> str:
    """Standard base64 with padding."""
    return base64.b64encode(content).decode("ascii")
