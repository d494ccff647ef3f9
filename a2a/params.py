"""Readers of params. A msgspec struct checks the types, and small functions check the rest. Every error names its
field."""

import base64
import binascii
import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct

from a2a.errors import InvalidParams
from a2a.mismatches import KINDS, violation
from a2a.types import Json

_SNAKE = re.compile(r"_([a-z0-9])")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
TIME = f"^{_TIME.pattern}$"
"""The pattern of the times that read_time() reads."""
_NUMERAL = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
INT32 = 2**31 - 1
"""The largest value of protobuf's int32."""
Whole = int | float | str
"""A whole number in JSON, where 1.0 is one. ProtoJSON also accepts "1", "1.0" and "1e0"."""


def rule(**keywords: Any) -> Meta:
    """Return keywords of JSON Schema for a type in a description. msgspec does not check them: functions do."""
    return Meta(extra_json_schema=keywords)


def whole(minimum: int = 0, maximum: int = INT32) -> Meta:
    """Return the rule of a whole number that read_whole() reads."""
    return rule(multipleOf=1, minimum=minimum, maximum=maximum, pattern=f"^{_NUMERAL.pattern}$")


Text = Annotated[str, rule(minLength=1)]
"""A text that must not be empty."""
Base64 = Annotated[str, rule(pattern="^([A-Za-z0-9+/_-]{4})*([A-Za-z0-9+/_-]{2,3})?=*$")]
"""A text that read_base64() reads."""
NAMES_TASK = rule(
    anyOf=[{"required": [name], "properties": {name: {"type": "string", "minLength": 1}}} for name in ("id", "taskId")]
)
"""The rule of params of 0.x that name a task in one of two ways."""


def check(params: Any, struct: type[Struct]) -> Json:
    """Return the params unchanged if they are an object whose members have the types of the struct.

    Members that the struct lacks are ignored. Raises InvalidParams with the path of the first wrong member.
    """
    if params is UNSET:
        raise InvalidParams(("params", "is required"))
    if not isinstance(params, dict):
        kind = KINDS["array"] if isinstance(params, list) else KINDS.get(type(params).__name__, KINDS["null"])
        raise InvalidParams(("params", f"must be an object with named members, not {kind}"))
    try:
        msgspec.convert(params, struct)
    except msgspec.ValidationError as error:
        raise InvalidParams(violation(str(error), struct)) from None
    return params


def read_id(wire: Json, name: str) -> str:
    """Return a required member that must not be empty. Raises InvalidParams."""
    text: str = wire[name]
    if not text:
        raise InvalidParams((name, "must be a non-empty string"))
    return text


def or_empty(params: Any) -> Any:
    """Return the params of a method that needs none: an empty object if they are absent or null."""
    return {} if params is UNSET or params is None else params


def camel_names(members: Json) -> Json:
    """Return the members with camelCase names, since ProtoJSON parsers must also accept snake_case."""
    if "_" not in "".join(members):
        return members
    return {_SNAKE.sub(lambda match: match[1].upper(), name): value for name, value in members.items()}


def read_whole(value: Whole | None, field: str, minimum: int = 0, maximum: int = INT32) -> int | None:
    """Return a whole number in any of its forms; None if it is absent.

    Raises InvalidParams for a fraction, for other text, and for a number out of bounds.
    """
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
    """Return the JSON number in a text; None for any other text."""
    return float(text) if _NUMERAL.fullmatch(text) else None


def read_time(value: str | None, field: str) -> datetime | None:
    """Return an RFC 3339 time in UTC; None if it is absent.

    The time needs a zone, and has up to nine digits of a second's fraction. Raises InvalidParams for any other text.
    """
    if value is None:
        return None
    # Python accepts more formats than RFC 3339, such as weeks.
    if _TIME.fullmatch(value):
        with suppress(ValueError, OverflowError):  # OverflowError: the zone moves the time out of the years 1 to 9999.
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
    raise InvalidParams((field, "must be a time such as 2026-03-02T09:15:05.250Z"))


def write_time(time: datetime) -> str:
    """Return a time as all dialects send it: in UTC, with milliseconds and Z."""
    if time.tzinfo is not UTC:
        time = time.astimezone(UTC)
    text = str(msgspec.to_builtins(time))  # In a tenth of the time of isoformat(). Microseconds only if there are any.
    return f"{text[:23]}Z" if time.microsecond else f"{text[:19]}.000Z"


def read_base64(text: str, field: str) -> bytes:
    """Return the bytes of a base64 text, standard or URL-safe, with or without padding. Raises InvalidParams."""
    try:
        plain = text.translate(_STANDARD).rstrip("=")
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidParams((field, "must be base64")) from None


_STANDARD = str.maketrans("-_", "+/")


def write_base64(content: bytes) -> str:
    """Return the bytes in standard base64 with padding."""
    return base64.b64encode(content).decode("ascii")
