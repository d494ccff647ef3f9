"""Waits for rows of budgets that another transaction has locked.

Tasks of one tenant share such a row, each for a few milliseconds. But a process that is frozen within its transaction
may hold one for long, and so may an operator. A lane that waits does nothing else meanwhile.
"""

from time import monotonic
from typing import Any

from tasks_app.database.sql import on_postgres

LONG, SHORT = "50ms", "2ms"
"""The longest wait for a row, and the longest wait after one that was in vain."""
SHORT_SECONDS = 1.0
"""Seconds from a wait that was in vain during which all waits of this process are short."""


class LockWaits:
    """The limit of the waits of this process. Any thread may use it."""

    def __init__(self) -> None:
        self.short_until = 0.0
        """The time on the monotonic clock until which waits are short."""

    def limit(self, cursor: Any) -> None:
        """Limit the waits for locks in the rest of the transaction."""
        if on_postgres():
            patience = SHORT if monotonic() < self.short_until else LONG
            cursor.execute(f"set local lock_timeout = '{patience}'")

    def note_refusal(self) -> None:
        """Note a wait that was in vain.

        Only a long wait makes the next ones short: a row in much demand is refused after short waits, too, and those
        must not prolong themselves.
        """
        if (now := monotonic()) >= self.short_until:
            self.short_until = now + SHORT_SECONDS


lock_waits = LockWaits()
"""The waits of this process."""
