"""Exchanges that the database did not take: kept while it is away, in a bounded space, and offered to it again."""

import threading
from collections import deque
from collections.abc import Sequence

from tasks_app.database.rows import BodyRow, ExchangeRow

MOST = 10_000
"""Exchanges kept at most."""
MOST_BYTES = 16_000_000
"""Characters of their bodies kept at most."""
OVERHEAD = 500
"""Bytes that count for an exchange besides its bodies."""
AT_ONCE = 512
"""Exchanges offered together, after those before were taken."""

Pair = tuple[ExchangeRow, BodyRow]


def _size(pair: Pair) -> int:
    return len(pair[1].request) + len(pair[1].response) + OVERHEAD


class Backlog:
    """A queue with a bound. The oldest exchanges go first when it is full: the newest tell what is wrong now."""

    def __init__(self) -> None:
        self.pairs: deque[Pair] = deque()
        self.bytes = 0
        self.offer = AT_ONCE
        """Exchanges to offer next. Fewer after each refusal, so that one that is always refused is alone in the end."""
        self.lost = 0
        """Exchanges that were never written, since the start."""
        self.lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.pairs)

    def keep(self, pairs: Sequence[Pair]) -> None:
        """Add exchanges; count those that have to go for them."""
        with self.lock:
            for pair in pairs:
                self.pairs.append(pair)
                self.bytes += _size(pair)
            while len(self.pairs) > MOST or self.bytes > MOST_BYTES:
                self.bytes -= _size(self.pairs.popleft())
                self.lost += 1

    def take(self) -> list[Pair]:
        """Remove and return the oldest exchanges, to be offered."""
        with self.lock:
            pairs = [self.pairs.popleft() for _ in range(min(self.offer, len(self.pairs)))]
            self.bytes -= sum(map(_size, pairs))
        return pairs

    def taken(self) -> None:
        """Offer more the next time: the database took what was offered."""
        self.offer = min(self.offer * 2, AT_ONCE)

    def refused(self, pairs: Sequence[Pair]) -> None:
        """Keep what was offered for another time, behind the rest."""
        self.offer = max(self.offer // 2, 1)
        self.keep(pairs)

    def lose(self) -> None:
        """Count an exchange that the database will never take."""
        with self.lock:
            self.lost += 1
