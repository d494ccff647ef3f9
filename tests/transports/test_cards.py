"""Cards, the catalogue and the keys over HTTP: cached, for pages in browsers, by whatever name, and for whom."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import AsyncRequestFactory
from django.urls import resolve

from a2a.canonical import signed_members
from a2a.signatures import new_key, read_keys, verify
from tasks_app.cards import public as cards
from tasks_app.cards.public import _foreign_card, _own_card
from tests.conftest import Person, Server
from tests.support.cached_cards import forget_cards
from tests.support.story import Door, LiveDoor, StockDoor

CARD = "/.well-known/agent-card.json"
OLD_CARD = "/.well-known/agent.json"
KEY_SET = "/.well-known/jwks.json"
CATALOGUE = "/agents/"
PUBLIC = [CARD, OLD_CARD, "/agents/story" + CARD, CATALOGUE, KEY_SET]
EXTENDED = "/agent/authenticatedExtendedCard"
PEM = new_key()

Got = tuple[int, dict[str, str], bytes]


def got(door: Door, path: str, method: str = "GET", **headers: str) -> Got:
    async def ask() -> Got:
        async with door.ask(method, path, b"", headers) as reply:
            return reply.status, reply.headers, b"".join([chunk async for chunk in reply.chunks])

    return asyncio.run(ask())


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
    """The card, in this process, with these settings; a status where it is none."""

    def card(path: str = CARD, *, version: str = "1.0", headers: dict[str, str] | None = None, **changed: Any) -> Any:
        for name, value in changed.items():
            setattr(settings, name, value)
        response = viewed(path, {"A2A-Version": version} | (headers or {}))
        return json.loads(response.content) if response.status_code == 200 else response.status_code

    return card


def viewed(path: str, headers: dict[str, str]) -> HttpResponse:
    """What the view of the path answers. The test client has a Host of its own and middleware before it."""
    bare = {name: value for name, value in headers.items() if name != "host"}
    request = AsyncRequestFactory().get(path, headers=bare)
    request.META["HTTP_HOST"] = headers.get("host", "testserver")
    view, arguments, named = resolve(request.path_info)
    return asyncio.run(view(request, *arguments, **named))  # type: ignore[no-any-return]


def urls(card: Any) -> set[str]:
    """Where JSON-RPC is spoken."""
    return {place["url"] for place in card["supportedInterfaces"] if place["protocolBinding"] == "JSONRPC"}


# ----------------------------------------------------------------- caching


@pytest.mark.parametrize("path", PUBLIC)
def test_what_is_public_is_cached_and_asked_for_again_by_tag_or_date(door: Door, path: str) -> None:
    status, told, body = got(door, path)
    assert status == 200
    assert json.loads(body)
    assert told["cache-control"] == "public, max-age=60"
    tag, date = told["etag"], told["last-modified"]
    for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*", f'W/"x",{tag}'):
        status, again, nothing = got(door, path, **{"If-None-Match": known})
        assert (status, again["etag"], nothing) == (304, tag, b"")
    assert got(door, path, **{"If-Modified-Since": date})[0] == 304
    assert got(door, path, **{"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"})[0] == 304


@pytest.mark.parametrize(
    "headers",
    [
        {"If-None-Match": '"other"'},
        {"If-None-Match": ""},
        {"If-None-Match": "," * 5_000},
        {"If-None-Match": '"other"', "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"},
        {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"If-Modified-Since": "yesterday"},
        {"If-Modified-Since": "Fri, 31 Feb 2100 00:00:00 GMT"},
        {"If-Modified-Since": "9" * 5_000},
    ],
)
def test_what_is_not_known_is_sent_whole(door: Door, headers: dict[str, str]) -> None:
    status, _, body = got(door, CARD, **headers)
    assert (status, json.loads(body)["name"]) == (200, "echo")


def test_each_shape_has_a_tag_of_its_own_and_caches_know_what_it_varies_by(door: Door) -> None:
    versions = {"1.0", "0.3", "0.2", ""}
    answers = [got(door, CARD, **({"A2A-Version": version} if version else {})) for version in versions]
    assert len({told["etag"] for _, told, _ in answers}) == len(versions)
    assert {told["vary"] for _, told, _ in answers} == {"A2A-Version"}
    assert got(door, CARD + "?A2A-Version=0.3")[1]["etag"] == got(door, CARD, **{"A2A-Version": "0.3.0"})[1]["etag"]


@pytest.mark.parametrize("path", PUBLIC)
def test_a_head_is_answered_and_nothing_can_be_done_but_read(door: Door, path: str) -> None:
    assert got(door, path, "HEAD")[0] == 200
    for method in ("PUT", "DELETE", "PATCH", "POST"):
        status, told, body = got(door, path, method)
        if method == "POST" and path == CATALOGUE:
            assert status == 404
        else:
            assert (status, told["allow"]) == (405, "GET, HEAD, OPTIONS")
        assert set(json.loads(body)) == {"error"}


@pytest.mark.parametrize("path", PUBLIC)
def test_pages_in_browsers_may_read_what_everybody_may(door: Door, path: str) -> None:
    for method, status in (("GET", 200), ("OPTIONS", 204), ("DELETE", 405)):
        found, told, _ = got(door, path, method, Origin="https://page.example")
        assert (found, told["access-control-allow-origin"]) == (status, "*")
        assert "access-control-allow-credentials" not in told
    asked = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "a2a-version"}
    told = got(door, path, "OPTIONS", Origin="https://page.example", **asked)[1]
    assert "A2A-Version" in told["access-control-allow-headers"]
    assert "access-control-allow-origin" not in got(door, "/jsonrpc", "OPTIONS", Origin="https://page.example")[1]


# --------------------------------------------------------------- catalogue


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


# ----------------------------------------------------------------- contents


def test_what_is_not_listed_is_on_no_public_card(door: Door) -> None:
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


def test_the_operator_adds_who_runs_it(card: Callable[..., Any]) -> None:
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


# --------------------------------------------------------------- addresses


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


# --------------------------------------------------------------- signatures


def test_without_a_key_nothing_is_signed_and_the_set_of_keys_is_empty(door: Door) -> None:
    assert json.loads(got(door, KEY_SET)[2]) == {"keys": []}
    assert b"signatures" not in got(door, CARD, **{"A2A-Version": "1.0"})[2]


@pytest.mark.parametrize("path", [CARD, "/agents/story" + CARD])
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
    # Who rebuilds the card from the members of 1.0 is shown these, and who takes it as it came all of it.
    assert verify(rules, keys) == signed_members(bare["1.0"])
    assert verify(whole, keys) == bare[""]
    assert card(path, version="0.2") == bare["0.2"]
    assert card(OLD_CARD).get("signatures") is None


def test_a_signed_card_keeps_its_tag_from_process_to_process_and_a_new_key_changes_it(settings: Any) -> None:
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


# ------------------------------------------------------------ extended, 0.2


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
def test_nobody_gets_it_without_a_key(server: Server, headers: dict[str, str]) -> None:
    for path in (EXTENDED, "/agents/story" + EXTENDED, "/agents/nobody" + EXTENDED):
        status, told, body = got(LiveDoor(server.url), path, **headers)
        invalid = ', error="invalid_token"' if "nobody" in headers.get("Authorization", "") else ""
        assert (status, told["www-authenticate"]) == (401, 'Bearer realm="taskdesk"' + invalid)
        assert json.loads(body)["error"]["code"] == -38009


def test_what_is_wrong_with_the_call_has_a_status(server: Server) -> None:
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
def test_it_is_recorded_like_any_call(owner: Person) -> None:
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
