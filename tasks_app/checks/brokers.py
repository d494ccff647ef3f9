"""Checks of what joins processes: the broker and the hints."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004  # as Django names it

from tasks_app.checks.stores import uses_sqlite

BROKERS = ("redis", "rediss", "amqp", "amqps")
HINTS = ("redis", "rediss", "unix")


@register()
def check_broker(**_: Any) -> list[CheckMessage]:
    """Check the broker.

    a2a.E004: `CELERY_BROKER_URL` is an address of another kind than Redis or AMQP.
    a2a.E005: SQLite with a broker. SQLite is for one process: workers cannot share it.
    """
    messages: list[CheckMessage] = []
    url = settings.CELERY_BROKER_URL
    if url and not _fits(url, BROKERS):
        hint = "Use redis://host:6379/0 or amqp://user:password@host//; in a password, / and # are %2F and %23."
        sentence = f"CELERY_BROKER_URL must be an address that begins with one of {_list_schemes(BROKERS)}."
        messages.append(Error(sentence, hint=hint, id="a2a.E004"))
    if url and uses_sqlite():
        hint = "Set DATABASE_URL to PostgreSQL, or unset CELERY_BROKER_URL: then the server runs agents itself."
        messages.append(Error("SQLite is for one process: workers cannot share it.", hint=hint, id="a2a.E005"))
    return messages


@register()
def check_hints(**_: Any) -> list[CheckMessage]:
    """Check what carries hints between processes.

    a2a.E006: `REDIS_URL` is not an address of Redis, or has an option that its client does not take.
    a2a.W001: Redis with SQLite, where there is only one process.
    a2a.W002: PostgreSQL without Redis. Streams of tasks that run in another process lag.
    """
    url = settings.REDIS_URL
    if url and not (_fits(url, HINTS) and _has_valid_options(url)):
        hint = "Use redis://host:6379/1; in a password, / and # are %2F and %23."
        sentence = f"REDIS_URL must be an address that begins with one of {_list_schemes(HINTS)}."
        return [Error(sentence, hint=hint, id="a2a.E006")]
    if url and uses_sqlite():
        hint = "Unset REDIS_URL, or set DATABASE_URL to PostgreSQL to run several processes."
        return [Warning("REDIS_URL joins processes, but on SQLite there is only one.", hint=hint, id="a2a.W001")]
    if not url and not uses_sqlite():
        lag = f"streams of tasks that run in another process lag up to {settings.A2A_POLL_SECONDS:g} s"
        hint = "Set REDIS_URL where several web processes or workers share the database."
        return [Warning(f"Without REDIS_URL {lag}.", hint=hint, id="a2a.W002")]
    return []


def _fits(url: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(url)
        place = parts.path if parts.scheme == "unix" else parts.hostname
        # A slash in a password ends the host early, and then the port is not a number: reading it raises ValueError.
        return parts.scheme in schemes and bool(place) and (parts.port or 1) > 0
    except ValueError:
        return False


def _has_valid_options(url: str) -> bool:
    """Return whether redis-py accepts every option in the URL."""
    import redis

    try:
        pool = redis.ConnectionPool.from_url(url)
        pool.connection_class(**pool.connection_kwargs)
    except (TypeError, ValueError, redis.RedisError):
        return False
    return True


def _list_schemes(schemes: tuple[str, ...]) -> str:
    return ", ".join(f"{scheme}://" for scheme in schemes)
