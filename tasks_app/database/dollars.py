"""Cursors of psycopg that take the placeholders of Django's cursors.

psycopg's own cursors translate a statement of more than 4,096 characters at each execution. That of a new task with its
exchange and its audit is longer.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg

_MARK = re.compile("(?<!%)%s")


class DollarCursor(psycopg.RawCursor[Any]):
    """A cursor that translates the placeholders of each statement once, to those of PostgreSQL."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> "DollarCursor":
        return super().execute(query if params is None else _with_dollars(query), params, **options)

    def executemany(self, query: Any, params_seq: Iterable[Any], **options: Any) -> None:
        super().executemany(_with_dollars(query), params_seq, **options)


@lru_cache(maxsize=512)
def _with_dollars(sql: str) -> bytes:
    """Return the statement with numbers in place of its marks."""
    numbers = count(1)
    return _MARK.sub(lambda _: f"${next(numbers)}", sql).replace("%%", "%").encode()
