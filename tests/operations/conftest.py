"""After every operation test each log of the database is replayed."""

import pytest


@pytest.fixture(autouse=True)
def _replayed(replay: None) -> None:
    """See the fixture `replay`."""
