"""How the time of a search grows with the length of its text."""

import gc
import time
from collections.abc import Callable

STEP = 32
"""The length of the long text as a multiple of that of the short one."""
TRIALS = 5
"""How often each length is searched at most. What else a machine does makes single searches slower, never all."""


def is_linear(search: Callable[[str], object], motif: str, longest: int) -> bool:
    """Return whether the time of a search of repeated motifs grows with their number, up to so many characters.

    32 times the length takes about 32 times as long, and 1,024 times in a quadratic search.
    """
    short = min(_seconds(search, motif, longest // STEP) for _ in range(TRIALS))
    return any(_seconds(search, motif, longest) < 200 * max(short, 0.0002) for _ in range(TRIALS))


def _seconds(search: Callable[[str], object], motif: str, length: int) -> float:
    """Return the processor time that this thread takes, without garbage of earlier tests."""
    text = (motif * (length // len(motif) + 1))[:length]
    gc.disable()
    try:
        began = time.thread_time()
        search(text)
        return time.thread_time() - began
    finally:
        gc.enable()
