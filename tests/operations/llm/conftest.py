"""An endpoint, and the agent set up for it."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from a2a.agents import registry
from tasks_app.agents import examples
from tests.operations.llm.endpoint import KEY, Endpoint


@pytest.fixture
def endpoint(settings: Any) -> Iterator[Endpoint]:
    """Give an endpoint, and the agent that asks it; once, so that what goes wrong is seen at once."""
    with Endpoint() as found:
        settings.LLM_BASE_URL, settings.LLM_MODEL, settings.LLM_API_KEY = found.url, "small-model", KEY
        examples.offer_llm()
        offered = registry.get("llm")
        assert offered
        registry.add(replace(offered, attempts=1))
        yield found
        registry._agents.pop("llm")
    assert found.faults == []


@pytest.fixture
def asked_again(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """Return an endpoint that is asked as often as usual, without a pause."""
    monkeypatch.setattr(examples, "BACKOFF", 0)
    examples.offer_llm()
    return endpoint
