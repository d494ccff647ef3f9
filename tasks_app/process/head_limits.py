"""The limits of the heads of requests, and the error for a request that must not be read further."""

from http import HTTPStatus

HEAD_BYTES = 32_768
"""The limit for the head of a request, and again for its trailers."""
FIELD_BYTES = 32
"""Bytes that a field counts besides its name and value, as in RFC 9113, 6.5.2, so that empty fields are not free."""
MAX_FIELDS = 128
"""Fields of a head, and again of its trailers. Small ones take many times their bytes in memory, and their time."""


class Refused(Exception):
    """Raised in a callback of the parser for a request that must not be read further. It ends the parsing."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def say_too_large() -> str:
    """Return the sentence about a head that is too large."""
    return f"The head of a request, or its trailers, may have {HEAD_BYTES} bytes."


def say_too_many(what: str) -> str:
    """Return the sentence about header fields or trailers that are too many."""
    return f"A request may have {MAX_FIELDS} {what}."
