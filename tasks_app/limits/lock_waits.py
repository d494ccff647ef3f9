"""Waits for rows of budgets that another transaction has locked.

Tasks of one tenant share such a row, each for a few milliseconds. But a process that is frozen within its transaction
may hold one for long, and so may an operator. A lane that waits does nothing else meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from tasks_app.database.locks import is_lock_refusal
from tasks_app.database.sessions import LOCK_WAIT
from tasks_app.database.sql import on_postgres

SHORT = "2ms"
"""The longest wait for a row after one that was in vain. Otherwise it is LOCK_WAIT."""
SHORT_SECONDS = 1.0
"""Seconds from a wait that was in vain during which all waits of this process are short."""


class LockWaits:
    """The limit of the waits of this process. Any thread may use it."""

    def __init__(self) -> None:
        self.short_until = 0.0
        """The time on the monotonic clock until which waits are short."""

    @contextmanager
    def limited(self, cursor: Any) -> Iterator[None]:
        """Limit the waits for locks of the block, which is the rest of a transaction.

        Only a long wait in vain makes the next ones short. Short waits are in vain for a row in much demand, too, and
        must not prolong themselves.
        """
        is_long = monotonic() >= self.short_until
        if on_postgres():
            cursor.execute(f"set local lock_timeout = '{LOCK_WAIT if is_long else SHORT}'")
        try:
            yield
        except Exception as error:
            if is_long and is_lock_refusal(error):
                self.short_until = monotonic() + SHORT_SECONDS
            raise


lock_waits = LockWaits()
"""The waits of this process."""
