"""After every operation test each log of the database is replayed; and what tests of webhooks share."""

from collections.abc import Iterator
from typing import Any

import pytest

from tasks_app import clock
from tests.operations.webhooks import Hand
from tests.support.receiver import Receiver, receiver


@pytest.fixture(autouse=True)
def _replayed(replay: None) -> None:
    """See the fixture `replay`."""


@pytest.fixture
def loopback(settings: Any) -> None:
    """Webhooks may lead to this machine."""
    settings.A2A_OUTBOUND_LOOPBACK = True


@pytest.fixture
def there() -> Iterator[Receiver]:
    """A receiver of webhooks."""
    with receiver() as found:
        yield found


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    """The hand of every clock."""
    moved = Hand()
    monkeypatch.setattr(clock, "now", moved)
    monkeypatch.setattr(clock, "shared", moved)
    return moved
