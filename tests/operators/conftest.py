import time
from collections.abc import Iterator

import pytest
import time_machine


@pytest.fixture
def whole_step() -> Iterator[None]:
    """Begin at the beginning of a step of 30 s. A code of the step before would move the steps that are accepted."""
    with time_machine.travel(time.time() // 30 * 30, tick=True):
        yield
