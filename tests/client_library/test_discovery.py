"""Cards: where they are found, which interface is chosen, and which cards are believed."""

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from a2a.client import REST, RPC, Client, Trust, errors
from a2a.client.cards import SOCKET, choose, decode_card
from a2a.client.link import WAYS
from a2a.dialects import cards_0_3, cards_1_0, v0_2
from a2a.signatures import key_set, new_key, read_keys, sign
from a2a.types import SOCKET_BINDING, Json
from tests.client_library.faulty import FakeClock, Faulty, card, error, faulty, plain, result, serving, task
from tests.wire.values import CARD

SPOKEN = {(way.binding, way.language.version) for way in WAYS}


def client_of(server: Faulty, fake: FakeClock | None = None, **options: Any) -> Client:
    return Client(server.url, clock=(fake or FakeClock()).clock, **options)


def test_cards_of_every_version_are_decoded() -> None:
    for encode in (cards_1_0.encode_card, cards_0_3.encode_card, v0_2.encode_card):
        decoded = decode_card(orjson.loads(orjson.dumps(encode(CARD))))
        assert (decoded.name, decoded.version, decoded.skills[0].id) == (CARD.name, CARD.version, CARD.skills[0].id)
        assert (decoded.streaming, decoded.push_notifications) == (CARD.streaming, CARD.push_notifications)
        assert {name: scheme.http_scheme for name, scheme in decoded.security_schemes.items()} == {
            name: scheme.http_scheme for name, scheme in CARD.security_schemes.items()
        }
    assert decode_card(orjson.loads(orjson.dumps(cards_1_0.encode_card(CARD)))).interfaces == CARD.interfaces


@pytest.mark.parametrize("path", ["/agents/pizza/jsonrpc", "/jsonrpc/"])
async def test_an_address_of_calls_in_place_of_an_agent_is_named(path: str) -> None:
    async with faulty(plain(404)) as server, Client(server.url + path) as client:
        with pytest.raises(errors.UnexpectedStatus, match=r"no agent card .*that of the agent, without /jsonrpc"):
            await client.card()


@pytest.mark.parametrize("url", ["127.0.0.1:18100", "localhost:18100", "127.0.0.1:18100/agents/echo/"])
async def test_an_address_without_a_scheme_is_named_as_given(url: str) -> None:
    async with Client(url, clock=FakeClock().clock) as client:
        with pytest.raises(errors.InvalidCall) as caught:
            await client.card()
    assert f"the address '{url}' is not valid" in caught.value.what
    assert caught.value.what.endswith("; add http:// or https:// before it")


BOTH = ((RPC, "0.3", "https://a/old"), (REST, "1.0.1", "https://a/rest"), (RPC, "1.0", "https://a/rpc"))
WORD, URI = ("WEBSOCKET", "1.0", "wss://a/word"), (SOCKET_BINDING, "1.0", "wss://a/uri")


@pytest.mark.parametrize(
    ("offers", "versions", "bindings", "url"),
    [
        pytest.param(BOTH, ("1.0", "0.3"), (), "https://a/rest", id="the newest, then as the card lists"),
        pytest.param(BOTH, ("1.0", "0.3"), (RPC, REST), "https://a/rpc", id="the preferred binding"),
        pytest.param(BOTH, ("0.3", "1.0"), (), "https://a/old", id="the preferred version"),
        pytest.param(BOTH, ("1.0", "0.3"), (RPC,), "https://a/rpc", id="one binding only"),
        pytest.param((("GRPC", "1.0", "a:1"), *BOTH), ("1.0",), (), "https://a/rest", id="none that is not spoken"),
        pytest.param((WORD, *BOTH), ("1.0",), (), "https://a/rest", id="WebSocket never over another binding"),
        pytest.param((WORD, BOTH[0]), ("1.0", "0.3"), (), "https://a/old", id="not even over one of an older version"),
        pytest.param((WORD,), ("1.0",), (), "wss://a/word", id="WebSocket if there is nothing else"),
        pytest.param((*BOTH, WORD), ("1.0",), (SOCKET, RPC), "wss://a/word", id="a bare word"),
        pytest.param((*BOTH, URI), ("1.0",), (SOCKET, RPC), "wss://a/uri", id="our URI"),
        pytest.param(((RPC, "1.0", "http://a/"), BOTH[0]), ("1.0", "0.3"), (), "https://a/old", id="never without TLS"),
    ],
)
def test_an_interface_is_chosen(offers: Sequence[Any], versions: Any, bindings: Any, url: str) -> None:
    found = decode_card(card(*offers))
    assert choose(found, "https://a/card", versions, bindings, SPOKEN)[0].url == url


@pytest.mark.parametrize("source", ["https://a/card", "HTTPS://a/card"])
@pytest.mark.parametrize(
    ("binding", "url"),
    [
        (RPC, "http://b/"),
        (RPC, "HTTP://b/"),
        (SOCKET, "ws://b/"),
        (SOCKET, "WS://b/"),
        (RPC, "//b/"),
        (RPC, "https://["),
    ],
)
def test_a_card_over_tls_leads_to_no_address_without_it(source: str, binding: str, url: str) -> None:
    with pytest.raises(errors.NoInterface):
        choose(decode_card(card((binding, "1.0", url))), source, ("1.0",), (), SPOKEN)


@pytest.mark.parametrize(
    ("source", "binding", "url"),
    [
        ("https://a/card", RPC, "HTTPS://b/"),
        ("https://a/card", SOCKET, "WSS://b/"),
        ("https://a/card", SOCKET, "ws://127.0.0.1/"),
        ("http://a/card", RPC, "http://b/"),
    ],
)
def test_other_addresses_of_a_card_are_used(source: str, binding: str, url: str) -> None:
    assert choose(decode_card(card((binding, "1.0", url))), source, ("1.0",), (), SPOKEN)[0].url == url


def test_a_card_without_a_fitting_interface_is_told_with_all_it_offers() -> None:
    found = decode_card(card(("GRPC", "1.0", "a:1")))
    with pytest.raises(errors.NoInterface, match=r"GRPC 1\.0 at a:1.*JSONRPC of 1\.0"):
        choose(found, "https://a/card", ("1.0",), (RPC,), SPOKEN)


async def test_the_card_of_0_2_is_found_where_that_of_0_3_is_missing() -> None:
    old = {"name": "n", "description": "d", "version": "1", "capabilities": {}, "protocolVersion": "0.2.9"}
    async with faulty(plain(500)) as server:
        wires = {"/.well-known/agent.json": old | {"url": server.url + "/rpc"}}
        server.script[:] = [serving(wires)]
        async with client_of(server) as client:
            assert (await client.card()).interfaces[0].version == "0.2"
            link = await client.link()
    assert (link.language.name, link.interface.url) == ("a2a-0.2", server.url + "/rpc")
    assert [asked.path for asked in server.asked] == ["/.well-known/agent-card.json", "/.well-known/agent.json"]
    assert "authorization" not in server.asked[0].headers


async def test_the_card_is_read_once_and_its_tenant_named_in_each_call() -> None:
    async with faulty(plain(500)) as server:
        wire = card((RPC, "1.0", server.url))
        wire["supportedInterfaces"][0]["tenant"] = "acme"
        server.script[:] = [serving({"/.well-known/agent-card.json": wire})]
        async with client_of(server, token="secret") as client:
            for _ in range(2):
                await client.get_task("t")
    assert [asked.verb for asked in server.asked] == ["GET", "POST", "POST"]
    assert [asked.wire["params"] for asked in server.asked[1:]] == [{"id": "t", "tenant": "acme"}] * 2
    assert {asked.headers["authorization"] for asked in server.asked} == {"Bearer secret"}


async def test_an_older_version_is_used_only_if_that_is_allowed() -> None:
    refusal = error(-32009, "Version not supported", [{"reason": "VERSION_NOT_SUPPORTED"}])
    for allowed in (True, False):
        async with faulty(plain(500)) as server:
            wire = card((RPC, "1.0", server.url), (RPC, "0.3", server.url))
            old = task() | {"status": {"state": "completed"}}
            server.script[:] = [serving({"/.well-known/agent-card.json": wire}), refusal, result(old)]
            async with client_of(server, downgrade=allowed) as client:
                if not allowed:
                    with pytest.raises(errors.VersionNotSupported, match="downgrade"):
                        await client.get_task("t")
                    continue
                assert (await client.get_task("t")).id == "t"
        assert [asked.headers["a2a-version"] for asked in server.asked[1:]] == ["1.0", "0.3"]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"name": 1, "url": "https://a/"}'])
async def test_an_answer_that_is_no_card_is_named_with_its_address(body: bytes) -> None:
    async with faulty(plain(200, body)) as server, client_of(server) as client:
        with pytest.raises(errors.InvalidResponse, match=r"agent-card\.json"):
            await client.card()


async def test_a_card_is_asked_for_again_after_a_fault() -> None:
    fake = FakeClock()
    async with faulty(plain(503), plain(200, orjson.dumps(card()))) as server, client_of(server, fake) as client:
        assert (await client.card()).name == "n"
    assert fake.pauses == [0.1]


async def test_calls_that_wait_for_the_card_share_the_error_of_its_reading() -> None:
    fake = FakeClock()
    async with faulty(plain(503)) as server, client_of(server, fake) as client:
        outcomes = await asyncio.gather(*(client.get_task("t") for _ in range(20)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [errors.Unavailable] * 20
        assert len(server.asked) == 4
        with pytest.raises(errors.Unavailable):
            await client.get_task("t")
    assert len(server.asked) == 8


async def test_a_stream_to_an_agent_that_is_not_found_is_not_tried_twice_over() -> None:
    fake = FakeClock()
    async with faulty(plain(503)) as server, client_of(server, fake) as client:
        with pytest.raises(errors.Unavailable):
            await anext(aiter(client.stream("Hi")))
    assert len(server.asked) == 4


# -------------------------------------------------------------- signatures

(KEY,) = read_keys(new_key())
(OTHER,) = read_keys(new_key())


async def believed(trust: Trust, key: Any = KEY, jku: str = "", change: Json | None = None) -> list[str]:
    """Fetch a card that was signed with a key; return the paths that were asked for. Raises ClientError."""
    async with faulty(plain(500)) as server:
        host = server.url.removeprefix("http://")
        signed = sign(card((RPC, "1.0", server.url)), key, jku.replace("HOST", host)) | (change or {})
        wires = {"/.well-known/agent-card.json": signed, "/keys": key_set((KEY,)), "/odd": {"keys": 5}}
        server.script[:] = [serving(wires)]
        hosts = tuple(name.replace("HOST", host) for name in trust.hosts)
        believing = Trust(keys=trust.keys, hosts=hosts, algorithms=trust.algorithms)
        try:
            async with client_of(server, trust=believing, token="secret") as client:
                await client.get_task("t")
        except errors.UntrustedCard:
            assert "/" not in [asked.path for asked in server.asked], "the agent was called"
            raise
        assert all("authorization" not in asked.headers for asked in server.asked if asked.path == "/keys")
        return [asked.path for asked in server.asked]


async def test_a_card_with_a_trusted_signature_is_believed() -> None:
    keys = key_set((KEY,))
    assert await believed(Trust(keys=keys), jku="http://evil.example/keys") == ["/.well-known/agent-card.json", "/"]
    assert "/keys" in await believed(Trust(hosts=("HOST",)), jku="http://HOST/keys")


@pytest.mark.parametrize(
    ("trust", "options"),
    [
        pytest.param(Trust(keys=key_set((OTHER,))), {}, id="another key"),
        pytest.param(Trust(keys=key_set((KEY,))), {"change": {"name": "else"}}, id="another content"),
        pytest.param(Trust(keys=key_set((KEY,))), {"change": {"signatures": []}}, id="no signature"),
        pytest.param(Trust(keys=key_set((KEY,)), algorithms=("RS256",)), {}, id="another algorithm"),
        pytest.param(Trust(hosts=("HOST",)), {"jku": "http://HOST@evil.example/keys"}, id="another host"),
        pytest.param(Trust(hosts=("evil.example",)), {"jku": "http://evil.example/keys"}, id="keys without TLS"),
        pytest.param(Trust(hosts=("HOST",)), {"jku": "http://HOST/nothing"}, id="no keys there"),
        pytest.param(Trust(hosts=("HOST",)), {"jku": "https://["}, id="an address of keys that is not valid"),
        pytest.param(Trust(hosts=("HOST",)), {"jku": "http://HOST/odd"}, id="keys that are not a list"),
        pytest.param(Trust(keys={"keys": [{"kty": "EC", "crv": "P-256", "x": 5, "y": 5}]}), {}, id="a key of numbers"),
        pytest.param(Trust(), {}, id="nothing to trust"),
    ],
)
async def test_a_card_without_a_trusted_signature_is_refused_and_not_called(trust: Trust, options: Any) -> None:
    with pytest.raises(errors.UntrustedCard, match="Do not call this agent"):
        await believed(trust, **options)


async def test_members_that_no_signature_covers_are_not_used() -> None:
    async with faulty(plain(500)) as server:
        # 0.x would find its address here, and signatures of 1.0 do not cover it.
        signed = sign(card(), KEY, "")
        signed["capabilities"] = signed["capabilities"] | {"unknown": True}
        server.script[:] = [serving({"/.well-known/agent-card.json": signed})]
        async with client_of(server, trust=Trust(keys=key_set((KEY,)))) as client:
            found = await client.found_card()
    assert found.wire["capabilities"] == {}


@pytest.mark.parametrize("key", [KEY, OTHER, None])
async def test_an_extended_card_needs_a_trusted_signature_too(key: Any) -> None:
    async with faulty(plain(500)) as server:
        public = sign(card((RPC, "1.0", server.url)), KEY, "")
        extended = card((RPC, "1.0", server.url), name="extended")
        extended = sign(extended, key, "") | {"documentationUrl": "https://evil.example/"} if key else extended
        server.script[:] = [plain(200, orjson.dumps(public)), result(extended)]
        async with client_of(server, trust=Trust(keys=key_set((KEY,)))) as client:
            if key is not KEY:
                with pytest.raises(errors.UntrustedCard):
                    await client.extended_card()
                return
            with pytest.raises(errors.UntrustedCard):
                await client.extended_card()
            server.script[:] = [result(sign(card(name="extended"), KEY, ""))]
            assert (await client.extended_card()).name == "extended"
