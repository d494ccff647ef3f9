"""Fixtures for tests of the doctor."""

from collections.abc import Iterator

import pytest

from tasks_app.database.bridge import bridge


@pytest.fixture
def open_lanes(transactional_db: None) -> Iterator[None]:
    """Run the lanes, without a check that the logs are whole: such tests damage them."""
    yield
    bridge.stop()
