"""Signatures of cards and the keys that are published."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from a2a.canonical import signed_members
from a2a.signatures import new_key, read_keys, verify
from tests.support.cached_cards import forget_cards
from tests.support.doors import Door, StockDoor
from tests.transports.cards.pages import CARD, KEY_SET, OLD_CARD, got

PEM = new_key()


def test_without_a_key_nothing_is_signed_and_the_set_of_keys_is_empty(door: Door) -> None:
    assert json.loads(got(door, KEY_SET)[2]) == {"keys": []}
    assert b"signatures" not in got(door, CARD, **{"A2A-Version": "1.0"})[2]


@pytest.mark.parametrize("path", [CARD, "/agents/story" + CARD])
@pytest.mark.requirement("ADR-12")
def test_every_card_but_that_of_0_2_is_signed_for_the_published_keys(card: Callable[..., Any], path: str) -> None:
    bare = {version: card(path, version=version) for version in ("1.0", "0.3", "0.2", "")}
    forget_cards()
    keys = card(KEY_SET, A2A_CARD_KEY=PEM + new_key("EdDSA"))
    assert [key["alg"] for key in keys["keys"]] == ["ES256", "EdDSA"]
    for version in ("1.0", "0.3"):
        signed = card(path, version=version)
        assert verify(signed, keys) == bare[version]
        assert verify(signed, {"keys": keys["keys"][:1]}) == bare[version]
        assert len(signed["signatures"]) == 1
    both = card(path, version="")
    assert both | {"signatures": None} == bare[""] | {"signatures": None}
    rules, whole = ({**both, "signatures": [one]} for one in both["signatures"])
    # One signature covers the members of 1.0, for clients that rebuild the card. The other covers the whole card.
    assert verify(rules, keys) == signed_members(bare["1.0"])
    assert verify(whole, keys) == bare[""]
    assert card(path, version="0.2") == bare["0.2"]
    assert card(OLD_CARD).get("signatures") is None


def test_a_signed_card_keeps_its_tag_in_each_process_until_the_key_changes(settings: Any) -> None:
    settings.A2A_CARD_KEY = PEM
    first = got(StockDoor(), CARD, **{"A2A-Version": "1.0"})
    forget_cards()
    second = got(StockDoor(), CARD, **{"A2A-Version": "1.0"})
    assert first[2] != second[2]  # ECDSA never signs twice alike.
    assert first[1]["etag"] == second[1]["etag"]
    settings.A2A_CARD_KEY = new_key() + PEM
    forget_cards()
    status, told, _ = got(StockDoor(), CARD, **{"A2A-Version": "1.0", "If-None-Match": first[1]["etag"]})
    assert (status, told["etag"] != first[1]["etag"]) == (200, True)


def test_no_address_that_a_caller_made_up_is_signed(card: Callable[..., Any]) -> None:
    signed = {"ALLOWED_HOSTS": ["*", ".example", "testserver", "localhost"], "A2A_CARD_KEY": PEM, "PORT": 8000}
    for host in ("testserver", "localhost", "localhost:8000"):
        assert "signatures" in card(headers={"host": host}, **signed)
    for host in ("evil.example", "x.example", "localhost:1", "testserver:443"):
        assert "signatures" not in card(headers={"host": host})
    assert "signatures" in card(headers={"host": "evil.example"}, A2A_PUBLIC_URL="https://public.example")


def test_the_key_set_is_found_where_the_signature_says(card: Callable[..., Any]) -> None:
    import base64

    protected = card(A2A_CARD_KEY=PEM, A2A_PUBLIC_URL="https://a.example/base")["signatures"][0]["protected"]
    header = json.loads(base64.urlsafe_b64decode(protected + "=" * (-len(protected) % 4)))
    assert header["jku"] == "https://a.example/base/.well-known/jwks.json"
    assert header["kid"] == read_keys(PEM)[0].kid
