"""Options of database connections for the settings."""

from typing import Any


def sqlite_options() -> dict[str, Any]:
    """Return the options of connections to SQLite."""
    return {
        "timeout": 20,
        # Take the write lock at the beginning: a transaction that reads first may be unable to get it later.
        "transaction_mode": "IMMEDIATE",
        "init_command": (
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; "
            "PRAGMA journal_size_limit=67108864; PRAGMA busy_timeout=20000;"
        ),
    }


def postgres_options(own: dict[str, Any], lease_seconds: float) -> dict[str, Any]:
    """Return the options of connections to PostgreSQL. `own` are those in DATABASE_URL, which win.

    `lock_timeout` is for statements that lock a whole table, and for commands. Lanes never wait for a row
    (database/locks.py).

    `idle_in_transaction_session_timeout` ends the session of a process that was frozen or cut off within a transaction,
    and so frees its locks. It is as long as a lease, during which no other process may work on its tasks anyway. It is
    at most 30 s, because webhooks and old rows may be locked too, and at least 5 s, because a large task may be folded
    between two statements.

    There is no `statement_timeout`, because a migration may take long.
    """
    idle = min(max(lease_seconds, 5), 30)
    limits = f"-c lock_timeout=2s -c idle_in_transaction_session_timeout={idle * 1000:.0f}ms"
    return {
        # For the cursors of database/prepared.py only; see there.
        "prepare_threshold": 5,
        # A machine that vanishes closes no connection, and a lane would wait for its answer for hours.
        "connect_timeout": 5,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
        **own,
        # If two options set the same parameter, PostgreSQL takes the last.
        "options": f"{limits} {own.get('options', '')}".strip(),
    }


def redis_options(url: str) -> dict[str, Any]:
    """Return the connection of the channel layer to Redis.

    Without the limits, in seconds, a connection to a host that accepts it and is silent would wait for ever.
    """
    return {"address": url, "socket_keepalive": True, "socket_timeout": 5.0, "socket_connect_timeout": 5.0}
