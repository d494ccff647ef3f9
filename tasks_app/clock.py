"""The one place that reads the time of day. Django's own now() looks at a setting each time."""

from datetime import UTC, datetime


def now() -> datetime:
    """Now, aware, in UTC."""
    return datetime.now(UTC)
