"""Cards in the form of a language other than A2A."""

import json

import pytest

from tasks_app.callers.scopes import ACP
from tests.support.doors import Door
from tests.transports.cards.pages import CARD, got

OLD = CARD.replace("agent-card.json", "agent.json")


@pytest.mark.requirement("ACP-26")
def test_the_card_of_acp_is_asked_for_by_its_name(door: Door) -> None:
    status, headers, body = got(door, OLD + "?language=acp")
    card = json.loads(body)
    assert (status, "a2a-version" in headers) == (200, False)
    assert (card["name"], card["capabilities"]["pushNotifications"]) == ("echo", True)
    assert card["authentication"]["scopes"] == list(ACP)
    assert card["url"].endswith("/jsonrpc")
    assert got(door, OLD + "?language=acp", **{"If-None-Match": headers["etag"]})[0] == 304


@pytest.mark.parametrize("path", [OLD, CARD])
def test_a_version_of_a2a_is_asked_for_by_its_name_too(door: Door, path: str) -> None:
    for name, version, other in (("a2a-1.0", "1.0", CARD), ("a2a-0.3", "0.3", CARD), ("a2a-0.2", "0.2", OLD)):
        status, headers, body = got(door, f"{path}?language={name}")
        plain = got(door, other, **{"A2A-Version": version})
        assert (status, headers["a2a-version"], body) == (200, version, plain[2])


@pytest.mark.parametrize("query", ["?language=", "?x=acp"])
@pytest.mark.parametrize("path", [OLD, CARD])
def test_a_query_without_a_language_changes_no_card(door: Door, path: str, query: str) -> None:
    plain, other = got(door, path), got(door, path + query)
    assert (other[2], other[1]["etag"]) == (plain[2], plain[1]["etag"])


@pytest.mark.parametrize("name", ["openrpc", "nope", "ACP", "a2a", "%00", "x" * 500])
@pytest.mark.parametrize("path", [OLD, CARD])
def test_a_language_without_a_card_is_refused_with_the_names_of_those_that_have_one(
    door: Door, path: str, name: str
) -> None:
    status, headers, body = got(door, f"{path}?language={name}")
    assert (status, headers["cache-control"]) == (400, "no-store")
    assert json.loads(body)["error"].endswith("ask for one of a2a-1.0, a2a-0.3, a2a-0.2, adr, acp")
    assert len(body) < 300
