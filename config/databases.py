"""Options of connections to the database that settings.py does not leave to its drivers."""

from typing import Any


def sqlite_options() -> dict[str, Any]:
    """Return what each connection to SQLite is set to."""
    return {
        "timeout": 20,
        # A transaction that reads and then writes cannot upgrade its snapshot; see check a2a.E001.
        "transaction_mode": "IMMEDIATE",
        "init_command": (
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; "
            "PRAGMA journal_size_limit=67108864; PRAGMA busy_timeout=20000;"
        ),
    }


def postgres_options(given: dict[str, Any], lease_seconds: float) -> dict[str, Any]:
    """Return what each connection to PostgreSQL is set to; the options that DATABASE_URL gives win.

    `lock_timeout` is for statements that lock a whole table, and for commands: lanes never wait for a row
    (event_log/locks.py). `idle_in_transaction_session_timeout` ends the session of a process that is frozen or cut off
    within a transaction, and so frees its locks. It is a lease, during which the tasks of that process are its own
    anyway; 30 s at most, because webhooks and rows past their time are locked with them; and 5 s at least, because
    between two statements a large task may be folded. There is no statement_timeout: a migration may take its time.
    """
    idle = min(max(lease_seconds, 5), 30)
    limits = f"-c lock_timeout=2s -c idle_in_transaction_session_timeout={idle * 1000:.0f}ms"
    return {
        # Only the cursors of database/prepared.py use it; see there.
        "prepare_threshold": 5,
        # A server whose machine has vanished says nothing: a lane would wait for its answer for hours.
        "connect_timeout": 5,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
        **given,
        # When two options set the same parameter, PostgreSQL takes the last.
        "options": f"{limits} {given.get('options', '')}".strip(),
    }
