"""The headers that let pages of other origins read answers (CORS, the Fetch standard, 3.3)."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.conf import settings

from a2a.extensions import HEADER, OLD_HEADER
from a2a.language import VERSION_HEADER

Headers = list[tuple[bytes, bytes]]

ALL = "*"
"""The value of A2A_CORS_ORIGINS for the pages of all origins."""
ANSWER_HEADERS = (
    *(
        VERSION_HEADER,
        HEADER,
        OLD_HEADER,
        "X-Request-ID",
        "X-Agent-ID",
        "WWW-Authenticate",
        "Retry-After",
        "Allow",
        "ETag",
    ),
    *("RateLimit", "RateLimit-Policy", "Accept-Ranges", "Content-Range", "Content-Disposition"),
)
"""Headers of answers that a page may read, besides those that every page may read (the Fetch standard, 2.2.2)."""
_CACHED = frozenset({"GET", "HEAD"})
"""The verbs whose answers caches keep."""
_BY_ORIGIN = b"Origin"
_EXPOSED = (b"access-control-expose-headers", ", ".join(ANSWER_HEADERS).encode())


class Origins:
    """The origins whose pages may call the protocol's paths. Without a list, no page of another origin may.

    Nothing allows credentials: a key is in a header, and the browser adds none by itself.
    """

    def __init__(self, listed: Sequence[str]) -> None:
        self.is_closed = not listed
        self.is_for_all = ALL in listed
        self.grants = {origin.encode(): (b"access-control-allow-origin", origin.encode()) for origin in listed}

    def concern(self, verb: str, origin: bytes | None) -> bool:
        """Return whether the answer to a request has headers for pages.

        Without an origin it has them if a cache may keep it, and then use it for a request with an origin.
        """
        return not self.is_closed and (origin is not None or verb in _CACHED)

    def headers(self, origin: bytes | None) -> Headers:
        """Return the headers that let the page read an answer; none if its origin is not listed."""
        grant = self.grants.get(b"*" if self.is_for_all else origin or b"")
        return [grant, _EXPOSED] if grant else []

    def complete(self, fields: Headers, origin: bytes | None) -> Headers:
        """Return the headers of an answer with those for the page."""
        return [*self.vary(fields), *self.headers(origin)]

    def vary(self, fields: Headers) -> Headers:
        """Return the headers with Origin in Vary, if answers differ by origin. There is one Vary in all, because some
        caches read only one."""
        if self.is_closed or self.is_for_all:
            return fields
        vary = [value for name, value in fields if name.lower() == b"vary"]
        return [pair for pair in fields if pair[0].lower() != b"vary"] + [(b"vary", b", ".join([*vary, _BY_ORIGIN]))]


def origin_in(scope: Mapping[str, Any]) -> bytes | None:
    """Return the origin of the page that has sent a request; None without one."""
    return next((bytes(value) for field, value in scope["headers"] if field == b"origin"), None)


def complete(fields: Headers, scope: Mapping[str, Any]) -> Headers:
    """Return the headers of the answer to a request with those for the page, by the settings."""
    origins, origin = _origins(tuple(settings.A2A_CORS_ORIGINS)), origin_in(scope)
    return origins.complete(fields, origin) if origins.concern(scope["method"], origin) else fields


@lru_cache(maxsize=1)
def _origins(listed: tuple[str, ...]) -> Origins:
    return Origins(listed)
