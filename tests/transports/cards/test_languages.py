"""Cards in the form of a language other than A2A."""

import json

import pytest

from tests.support.doors import Door
from tests.transports.cards.pages import CARD, got

OLD = CARD.replace("agent-card.json", "agent.json")


@pytest.mark.requirement("ACP-26")
def test_the_card_of_acp_is_asked_for_by_its_name(door: Door) -> None:
    status, headers, body = got(door, OLD + "?language=acp")
    card = json.loads(body)
    assert (status, "a2a-version" in headers) == (200, False)
    assert (card["name"], card["capabilities"]["pushNotifications"]) == ("echo", True)
    assert card["authentication"]["scopes"][0] == "acp:agent:identify"
    assert card["url"].endswith("/jsonrpc")
    assert got(door, OLD + "?language=acp", **{"If-None-Match": headers["etag"]})[0] == 304


@pytest.mark.parametrize("query", ["?language=", "?language=a2a-1.0", "?language=openrpc", "?language=nope", "?x=acp"])
@pytest.mark.parametrize("path", [OLD, CARD])
def test_any_other_name_changes_no_card(door: Door, path: str, query: str) -> None:
    plain, other = got(door, path), got(door, path + query)
    assert (other[2], other[1]["etag"]) == (plain[2], plain[1]["etag"])
