"""Addresses on cards: those that were asked at, unless a caller made them up."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tasks_app.cards import public as cards
from tasks_app.cards.public import _foreign_card, _own_card
from tests.conftest import Server
from tests.support.doors import LiveDoor, StockDoor
from tests.transports.cards.pages import CARD, CATALOGUE, got, urls, viewed


def test_a_card_gives_out_the_address_it_was_asked_at(server: Server, card: Callable[..., Any]) -> None:
    found = json.loads(got(LiveDoor(server.url), CARD, **{"A2A-Version": "1.0"})[2])
    assert urls(found) == {f"{server.url}/jsonrpc"}
    assert urls(card()) == {"http://testserver/jsonrpc"}
    assert urls(card(headers={"host": "LOCALHOST:8000"})) == {"http://localhost:8000/jsonrpc"}


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "localhost@evil.example",
        ".localhost",
        "evil.example/localhost",
        "localhost:8000/x",
        "localhost:x",
        "localhost,evil.example",
        "local host",
        "[::1",
        "[evil.example]",
        "a" * 5_000,
        "localhost" + ":1" * 50,
        "localhost:0",
        "localhost:65536",
        "localhost:99999999",
        "\u0131ocalhost",
        '"><script>',
        "%0d%0aX: y",
        "-",
    ],
)
def test_a_hostile_host_is_never_given_back(settings: Any, card: Callable[..., Any], host: str) -> None:
    for path in (CARD, CATALOGUE):
        response = viewed(path, {"host": host})
        assert response.status_code == 400
        assert "evil" not in response.content.decode() + str(response.headers)
        assert "ALLOWED_HOSTS" in response.content.decode()
    assert card(A2A_PUBLIC_URL="https://a.example/base", headers={"host": host})["supportedInterfaces"][0]["url"] == (
        "https://a.example/base/jsonrpc"
    )


FORWARDED = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "public.example", "Forwarded": "host=other.example"}
STANDARD = 'for=192.0.2.60;proto=http;host=evil.example, For="[2001:db8::1]:47";Proto=https;Host="public.example"'


@pytest.mark.parametrize(
    ("trusted", "headers", "address"),
    [
        ("", FORWARDED, "http://testserver"),
        ("x-forwarded", FORWARDED, "https://public.example"),
        ("x-forwarded", {"X-Forwarded-Proto": "https"}, "https://testserver"),
        ("x-forwarded", {"X-Forwarded-Host": "evil.example, public.example:8443"}, "http://public.example:8443"),
        ("x-forwarded", {"X-Forwarded-Proto": "javascript"}, "http://testserver"),
        ("x-forwarded", {"X-Forwarded-Host": "evil.example"}, None),
        ("x-forwarded", {"X-Forwarded-Host": "public.example, evil.example"}, None),
        ("x-forwarded", {"X-Forwarded-Host": "public.example/x"}, None),
        ("x-forwarded", {"Forwarded": "host=public.example"}, "http://testserver"),
        ("forwarded", {"Forwarded": STANDARD}, "https://public.example"),
        ("forwarded", {"Forwarded": "host=evil.example"}, None),
        ("forwarded", {"Forwarded": 'host="public.example'}, "http://testserver"),
        ("forwarded", {"Forwarded": "proto=https"}, "https://testserver"),
        ("forwarded", {"Forwarded": "a" * 60_000 + "=" * 5_000}, "http://testserver"),
        ("forwarded", FORWARDED, None),
    ],
)
def test_only_trusted_headers_of_a_proxy_change_the_address(
    card: Callable[..., Any], trusted: str, headers: dict[str, str], address: str | None
) -> None:
    hosts = ["testserver", "public.example"]
    found = card(A2A_TRUST_FORWARDED=trusted, ALLOWED_HOSTS=hosts, headers=headers)
    assert found == 400 if address is None else urls(found) == {f"{address}/jsonrpc"}


@pytest.mark.parametrize(
    ("trusted", "headers"), [("x-forwarded", FORWARDED), ("forwarded", {"Forwarded": STANDARD})], ids=str
)
def test_only_named_proxies_change_the_address(
    settings: Any, card: Callable[..., Any], trusted: str, headers: dict[str, str]
) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.A2A_TRUSTED_PROXIES = ["10.0.0.0/8"]
    hosts = ["testserver", "public.example"]
    assert urls(card(A2A_TRUST_FORWARDED=trusted, ALLOWED_HOSTS=hosts, headers=headers)) == {
        "http://testserver/jsonrpc"
    }
    settings.A2A_TRUSTED_PROXIES = ["127.0.0.1"]
    assert urls(card(headers=headers)) == {"https://public.example/jsonrpc"}


def test_caches_are_told_which_headers_count(settings: Any) -> None:
    for trusted, vary in (("x-forwarded", "X-Forwarded-Host, X-Forwarded-Proto"), ("forwarded", "Forwarded")):
        settings.A2A_TRUST_FORWARDED = trusted
        assert got(StockDoor(), CARD)[1]["vary"] == f"A2A-Version, {vary}"
        assert got(StockDoor(), CATALOGUE)[1]["vary"] == vary
    settings.A2A_PUBLIC_URL = "https://a.example"
    assert got(StockDoor(), CARD)[1]["vary"] == "A2A-Version"


def test_only_cards_at_our_own_addresses_are_for_caches_that_others_share(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    for path in (CARD, CATALOGUE):
        assert viewed(path, {"host": "testserver"}).headers["cache-control"].startswith("public")
        assert viewed(path, {"host": "testserver:1337"}).headers["cache-control"].startswith("private")


def test_made_up_names_evict_no_card_of_ours(card: Callable[..., Any]) -> None:
    mine = card(ALLOWED_HOSTS=["testserver", ".example"])
    built, kept = _own_card.cache_info().misses, _own_card.cache_info().currsize
    for number in range(200):
        assert urls(card(headers={"host": f"h{number}.example"})) == {f"http://h{number}.example/jsonrpc"}
        assert card(f"/agents/h{number}{CARD}") == 404
    assert card() == mine
    assert (_own_card.cache_info().misses, _own_card.cache_info().currsize) == (built, kept)
    assert _foreign_card.cache_info().currsize <= cards.FOREIGN
