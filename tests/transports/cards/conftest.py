"""Doors that show cards, and cards under other settings."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.cached_cards import forget_cards
from tests.support.doors import Door, LiveDoor, StockDoor
from tests.transports.cards.pages import CARD, viewed


@pytest.fixture(params=["live", "stock"])
def door(request: pytest.FixtureRequest) -> Door:
    if request.param == "live":
        return LiveDoor(request.getfixturevalue("server").url)
    return StockDoor()


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    forget_cards()
    yield
    forget_cards()


@pytest.fixture
def card(settings: Any) -> Callable[..., Any]:
    """Return the card, in this process, with these settings; a status where it is none."""

    def card(path: str = CARD, *, version: str = "1.0", headers: dict[str, str] | None = None, **changed: Any) -> Any:
        for name, value in changed.items():
            setattr(settings, name, value)
        response = viewed(path, {"A2A-Version": version} | (headers or {}))
        return json.loads(response.content) if response.status_code == 200 else response.status_code

    return card
