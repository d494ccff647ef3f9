"""The extended card of 0.2, which has a path of its own."""

import json

import pytest

from tests.conftest import Person, Server
from tests.support.doors import LiveDoor, StockDoor
from tests.transports.cards.pages import EXTENDED, OLD_CARD, got


def test_0_2_gets_the_extended_card_beside_the_url_of_its_card(server: Server) -> None:
    door, key = LiveDoor(server.url), {"Authorization": f"Bearer {server.owner}"}
    for path in (OLD_CARD, "/agents/singer" + OLD_CARD):
        public = json.loads(got(door, path)[2])
        assert public["supportsAuthenticatedExtendedCard"] is True
        beside = public["url"].removeprefix(server.url).removesuffix("/jsonrpc") + EXTENDED
        status, told, body = got(door, beside, **key)
        extended = json.loads(body)
        assert (status, extended["protocolVersion"], extended["url"]) == (200, "0.2.9", public["url"])
        assert "whisper" in {skill["id"] for skill in extended["skills"]}
        assert told["cache-control"].startswith("private")
        assert "Authorization" in told["vary"]
        assert "access-control-allow-origin" not in told
    assert got(door, "/agents/backstage" + EXTENDED, **key)[0] == 200


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer nobody"}, {"Authorization": "Basic x"}])
def test_the_extended_card_needs_a_key(server: Server, headers: dict[str, str]) -> None:
    for path in (EXTENDED, "/agents/story" + EXTENDED, "/agents/nobody" + EXTENDED):
        status, told, body = got(LiveDoor(server.url), path, **headers)
        invalid = ', error="invalid_token"' if "nobody" in headers.get("Authorization", "") else ""
        assert (status, told["www-authenticate"]) == (401, 'Bearer realm="taskdesk"' + invalid)
        assert json.loads(body)["error"]["code"] == -38009


def test_each_fault_of_the_call_has_a_status(server: Server) -> None:
    door, key = LiveDoor(server.url), {"Authorization": f"Bearer {server.owner}"}
    assert got(door, "/agents/nobody" + EXTENDED, **key)[0] == 404
    status, told, _ = got(door, EXTENDED, "POST", **key)
    assert (status, told["allow"]) == (405, "GET, HEAD")
    status, _, body = got(door, EXTENDED, **key, Host="evil.example")
    assert (status, json.loads(body)["error"]["code"]) == (404, -32007)
    assert b"evil" not in body


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
@pytest.mark.storage
def test_a_call_for_the_extended_card_is_recorded(owner: Person) -> None:
    from tests.support.exchanges import recorded

    headers = {"Authorization": f"Bearer {owner.key}"}
    body = got(StockDoor(), EXTENDED, **headers)[2]
    assert got(StockDoor(), EXTENDED)[0] == 401
    found, refused = recorded(2)
    assert (found.dialect, found.method, found.outcome, found.code) == (
        "a2a-0.2",
        "agent/authenticatedExtendedCard",
        "result",
        None,
    )
    assert (found.caller_id, found.http_status, found.body.response) == (owner.caller.owner_id, 200, body.decode())
    assert (refused.outcome, refused.code, refused.http_status, refused.caller_id) == ("refused", -38009, 401, None)
