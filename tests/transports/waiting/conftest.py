"""Short times."""

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def short_silence(settings: Any) -> None:
    settings.A2A_PING_SECONDS, settings.A2A_WAIT_SECONDS = 0.05, 0
