"""A process that goes down, for as long as a test wants it to."""

from collections.abc import Iterator
from contextlib import contextmanager

from tasks_app.event_log.readers import readers


@contextmanager
def draining() -> Iterator[None]:
    """Take no new work, as a process does that goes down."""
    readers.draining = True
    try:
        yield
    finally:
        readers.draining = False
