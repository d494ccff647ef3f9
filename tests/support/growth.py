"""How the time of a search grows with the length of its text."""

import time
from collections.abc import Callable

STEP = 32
"""The length of the long text as a multiple of that of the short one."""


def is_linear(search: Callable[[str], object], motif: str, longest: int) -> bool:
    """Return whether the time of a search of repeated motifs grows with their number, up to so many characters.

    32 times the length takes about 32 times as long, and 1,024 times in a quadratic search. It is processor time, so
    that others on the machine do not count.
    """

    def taken(length: int, times: int) -> float:
        text = (motif * (length // len(motif) + 1))[:length]
        seconds = []
        for _ in range(times):
            began = time.process_time()
            search(text)
            seconds.append(time.process_time() - began)
        return min(seconds)

    return taken(longest, times=1) < 200 * max(taken(longest // STEP, times=5), 0.0002)
