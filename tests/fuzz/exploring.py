"""The length of a fuzz test: the same examples each time in `make test`, others for minutes in `make fuzz`."""

import os
import random
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
"""The time for each fuzz test; 0: a number of examples that are the same each time."""
SEED = os.environ.get("FUZZ_SEED", "")
"""The seed of the first round, as a failure prints it."""
ROUND = 200
"""Examples of one seed."""
STREAM_SECONDS = 1.0
"""The longest time that a stream of the server under test stays open. An open shared stream ends its followers in no
other way, and the usual limit is longer than the patience of a test."""
PHASES = (Phase.explicit, Phase.generate, Phase.shrink)
"""Hypothesis' own notes on failures are not used: a seed is printed."""
Value = TypeVar("Value")


def explore(check: Callable[[Value], None], values: SearchStrategy[Value], examples: int) -> None:
    """Run the check on examples; the smallest example that fails raises its error."""
    if not SECONDS:
        _round(check, values, settings(derandomize=True, max_examples=examples, phases=PHASES, database=None))
        return
    ends, rounds = time.monotonic() + SECONDS, 0
    while rounds == 0 or time.monotonic() < ends:
        number = int(SEED) if SEED and not rounds else random.randrange(2**32)  # noqa: S311  # no secret
        try:
            _round(seed(number)(check), values, settings(max_examples=ROUND, phases=PHASES, database=None))
        except BaseException:
            sys.__stdout__.write(f"\nFUZZ_SEED={number} repeats this.\n")
            raise
        rounds += 1
    sys.__stdout__.write(f"\n{rounds * ROUND} examples in {SECONDS:g} s.\n")


def _round(check: Callable[[Any], None], values: SearchStrategy[Any], options: settings) -> None:
    def tried(value: Any) -> None:
        check(value)

    options(given(values)(tried))()
