"""Contents of cards and of the catalogue."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tasks_app.cards.public import _own_card
from tests.conftest import Server
from tests.support.cached_cards import forget_cards
from tests.support.doors import Door, LiveDoor
from tests.transports.cards.pages import CARD, CATALOGUE, OLD_CARD, got, urls


def test_the_catalogue_lists_every_agent_with_where_it_is(door: Door) -> None:
    agents = {agent["name"]: agent for agent in json.loads(got(door, CATALOGUE)[2])["agents"]}
    assert {"echo", "story", "interview", "scoped", "singer"} <= set(agents)
    assert "backstage" not in agents
    story = agents["story"]
    assert set(story) == {"name", "description", "url", "card", "skills"}
    assert story["url"].endswith("/agents/story/jsonrpc")
    assert [skill["id"] for skill in agents["singer"]["skills"]] == ["sing"]
    path = "/" + story["card"].split("/", 3)[3]
    card = json.loads(got(door, path, **{"A2A-Version": "1.0"})[2])
    assert (card["name"], urls(card)) == ("story", {story["url"]})


def test_no_call_can_be_made_to_the_catalogue(server: Server) -> None:
    status, _, body = got(LiveDoor(server.url), CATALOGUE, "POST", Authorization=f"Bearer {server.owner}")
    assert (status, "name an agent" in json.loads(body)["error"]) == (404, True)


def test_an_unlisted_agent_is_on_no_public_card(door: Door) -> None:
    for path, version in ((CARD, "1.0"), (CARD, "0.3"), (CARD, ""), (OLD_CARD, ""), (CATALOGUE, "")):
        body = got(door, path, **({"A2A-Version": version} if version else {}))[2]
        assert b"sing" in body
        assert b"backstage" not in body
        assert b"whisper" not in body
    hidden, unknown = got(door, "/agents/backstage" + CARD), got(door, "/agents/nobody" + CARD)
    assert hidden[0] == unknown[0] == 404
    assert hidden[2].replace(b"backstage", b"nobody") == unknown[2]
    assert b"whisper" not in got(door, "/agents/singer" + CARD)[2]


def test_a_card_says_which_scopes_are_needed_and_that_there_is_more_to_see(card: Callable[..., Any]) -> None:
    own = card("/agents/scoped" + CARD)
    everything = ["tasks:read", "tasks:write", "tasks:cancel", "weather"]
    assert own["securityRequirements"] == [{"schemes": {name: {"list": everything}}} for name in ("bearer", "key")]
    assert "securityRequirements" not in own["skills"][0]
    assert own["capabilities"]["extendedAgentCard"] is True
    whole = card()
    (skill,) = [skill for skill in whole["skills"] if skill["id"] == "scoped"]
    assert skill["securityRequirements"] == own["securityRequirements"]
    old = card("/agents/scoped" + CARD, version="0.3")
    assert old["security"] == [{"bearer": everything}, {"key": everything}]


def test_the_operator_adds_the_provider_and_links(card: Callable[..., Any]) -> None:
    assert not {"provider", "documentationUrl", "iconUrl"} & set(card())
    forget_cards()
    found = card(
        A2A_PROVIDER="Söhne",
        A2A_PROVIDER_URL="https://x.example",
        A2A_DOCUMENTATION_URL="https://x.example/docs",
        A2A_ICON_URL="https://x.example/icon.png",
    )
    assert found["provider"] == {"organization": "Söhne", "url": "https://x.example"}
    assert (found["documentationUrl"], found["iconUrl"]) == ("https://x.example/docs", "https://x.example/icon.png")


def test_an_unlisted_default_agent_has_no_card_at_the_root(card: Callable[..., Any]) -> None:
    assert card(A2A_DEFAULT_AGENT="backstage") == 404


@pytest.mark.parametrize("version", ["x" * 5_000, "1.0\n", "9" * 40 + ".0", "é", "0.3.0.0", "-1", "1.0,0.3", " "])
def test_an_odd_version_finds_the_hybrid_card_and_fills_no_cache(card: Callable[..., Any], version: str) -> None:
    hybrid = card(version="")
    kept = _own_card.cache_info().currsize
    assert card(CARD + "?A2A-Version=" + version.replace("\n", "%0A"), version="") == hybrid
    assert _own_card.cache_info().currsize == kept
