"""The Retry-After header of HTTP, in the answers of other servers to the client and to the sender of webhooks."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

MOST = 10**9
"""Seconds beyond which no caller waits. A larger number counts as this."""


def read_retry_after(header: str, now: datetime) -> timedelta | None:
    """Return the wait that a header asks for, as seconds or as a date (RFC 9110, 10.2.3); None if it has neither."""
    text = header.strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:18]), MOST))
    try:
        time = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return max(time - now, timedelta())
