"""Exchanges that the database refused: kept in a bounded queue while it is away, and offered to it again."""

import threading
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from tasks_app.database.rows import AuditRow, BodyRow, ExchangeRow

MOST = 10_000
"""The limit of exchanges."""
MOST_BYTES = 16_000_000
"""The limit of their size: the bytes that their bodies take in memory, and ROW_SIZE for each."""
ROW_SIZE = 2_000
"""Bytes that an exchange takes in memory apart from its bodies, roughly."""
AT_ONCE = 512
"""Exchanges in one offer, after offers that the database accepted."""


class Halves(NamedTuple):
    """The rows of an exchange, with the entry of the audit that is stored with them, if there is one."""

    row: ExchangeRow
    body: BodyRow
    entry: AuditRow | None = None


def size_of(halves: Halves) -> int:
    """Return the bytes that an exchange takes in memory, roughly. A single emoji makes a text four times as large."""
    texts = halves.body.request, halves.body.response
    return ROW_SIZE + sum(len(text) if text.isascii() else 4 * len(text) for text in texts)


class Backlog:
    """A bounded queue. When it is full the oldest exchanges are dropped, because the newest show what is wrong now."""

    def __init__(self) -> None:
        self.pairs: deque[Halves] = deque()
        self.bytes = 0
        self.offer = AT_ONCE
        """Exchanges in the next offer. Each refusal halves it, so that in the end an exchange that is always refused is
        alone in its offer."""
        self.losses = 0
        """Exchanges since the start that were dropped or can never be written."""
        self.lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.pairs)

    def keep(self, pairs: Sequence[Halves]) -> None:
        """Add exchanges, and drop and count the oldest ones beyond the limits."""
        with self.lock:
            for pair in pairs:
                self.pairs.append(pair)
                self.bytes += size_of(pair)
            while len(self.pairs) > MOST or self.bytes > MOST_BYTES:
                self.bytes -= size_of(self.pairs.popleft())
                self.losses += 1

    def take(self) -> list[Halves]:
        """Remove and return the oldest exchanges for an offer."""
        with self.lock:
            pairs = [self.pairs.popleft() for _ in range(min(self.offer, len(self.pairs)))]
            self.bytes -= sum(map(size_of, pairs))
        return pairs

    def enlarge_offer(self) -> None:
        """Double the next offer, because the database accepted the last one."""
        self.offer = min(self.offer * 2, AT_ONCE)

    def put_back(self, pairs: Sequence[Halves]) -> None:
        """Add the exchanges of a refused offer behind the others, and halve the next offer."""
        self.offer = max(self.offer // 2, 1)
        self.keep(pairs)

    def lose(self) -> None:
        """Count an exchange that the database will never accept."""
        with self.lock:
            self.losses += 1
