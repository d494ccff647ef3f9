"""The memory that heads of requests take."""

from collections.abc import Iterable

FIELD = 140
"""Bytes that a field of a head takes in memory besides its name and value, in two objects and a pair."""


def weigh_head(fields: Iterable[tuple[bytes, bytes]]) -> int:
    """Return the bytes of memory that the fields of a head take."""
    return sum(FIELD + len(name) + len(value) for name, value in fields)
