"""Servers that mean harm, and addresses and credentials that cannot be sent: each gives a typed error, in bounded time
and memory, and no secret leaves for another server or an error message."""

import gzip
import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from a2a.client import (
    REST,
    RPC,
    SOCKET,
    ApiKey,
    Bearer,
    Client,
    ClientCredentials,
    Retries,
    Timeouts,
    errors,
)
from a2a.client.credentials import Credentials
from a2a.client.memory import Numbers
from a2a.types import Interface
from tests.client_library.faulty import (
    Act,
    Asked,
    FakeClock,
    card,
    chunk,
    events,
    faulty,
    plain,
    result,
    rpc,
    serving,
    status,
    task,
)
from tests.client_library.hostile import HEAD, streaming, written

WORKING, DONE = "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"
BEGIN, END = {"task": task(WORKING)}, status(DONE)


def streamed(*lines: bytes, media: str = "text/event-stream", **headers: str) -> Act:
    """Answer with a stream that begins with these lines, and the beginning of a task."""
    more = "".join(f"\r\n{name.replace('_', '-')}: {value}" for name, value in headers.items())
    begin = orjson.dumps({"jsonrpc": "2.0", "result": BEGIN})
    return written(f"{HEAD}{media}{more}", b"\n".join([*lines, b"data: " + begin, b"", b""]))


# ------------------------------------------------------- what cannot be sent


@pytest.mark.parametrize("binding", [RPC, REST, SOCKET])
@pytest.mark.parametrize(
    "url", ["http://[", "ws://[", "nonsense", "", "file:///etc/passwd", "wss://", "http://a:99999/", "http://xn--0.x/"]
)
async def test_an_address_that_is_not_valid_is_reported_and_not_called(binding: str, url: str) -> None:
    fake = FakeClock()
    interface = Interface(url=url, binding=binding, version="1.0")
    async with Client(url, interface=interface, clock=fake.clock) as client:
        with pytest.raises(errors.InvalidCall, match="is not valid") as caught:
            await client.get_task("t")
        with pytest.raises(errors.InvalidCall):
            await anext(aiter(client.stream("Hi")))
    assert (fake.pauses, caught.value.retryable, caught.value.processed) == ([], False, False)


@pytest.mark.parametrize("binding", [RPC, SOCKET])
@pytest.mark.parametrize("secret", ["s3cr\net", "s3cr\x00et", "s3cr\u00e9t", "s3cret\n", "s3cret \udc80"])
@pytest.mark.parametrize("make", [Bearer, ApiKey])
async def test_credentials_that_no_header_can_have_are_refused_without_showing_them(
    binding: str, secret: str, make: Callable[[str], Credentials]
) -> None:
    async with faulty(result(task())) as server:
        url = server.url if binding == RPC else server.url.replace("http", "ws")
        interface = Interface(url=url, binding=binding, version="1.0")
        async with Client(url, interface=interface, credentials=make(secret), clock=FakeClock().clock) as client:
            with pytest.raises(errors.InvalidCall, match="credentials have a space or a character") as caught:
                await client.get_task("t")
    assert "s3cr" not in f"{caught.value}{caught.value.__cause__}{caught.value.__context__}"
    assert server.asked == []


@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_a_token_with_a_line_end_is_refused_as_such(end: str) -> None:
    async with Client("http://127.0.0.1:9/", token=f"s3cret{end}", clock=FakeClock().clock) as client:
        with pytest.raises(errors.InvalidCall, match="Authorization cannot have: they end with a line end"):
            await client.card()


async def test_an_extension_that_no_header_can_have_is_reported() -> None:
    async with faulty(result(task())) as server, rpc(server, FakeClock(), extensions=("https://\u00e9/",)) as client:
        with pytest.raises(errors.InvalidCall, match="a header is not valid"):
            await client.get_task("t")


# ------------------------------------------------------ where credentials go


@pytest.mark.parametrize("binding", [RPC, REST])
@pytest.mark.parametrize("credentials", [ApiKey("secret"), Bearer("secret")])
async def test_a_redirect_leads_to_no_other_server(binding: str, credentials: Credentials) -> None:
    async with faulty(result(task())) as other, faulty(plain(307, Location=other.url + "/")) as server:
        interface = Interface(url=server.url, binding=binding, version="1.0")
        async with Client(server.url, interface=interface, credentials=credentials, clock=FakeClock().clock) as client:
            with pytest.raises(errors.UnexpectedStatus, match="307"):
                await client.get_task("t")
            with pytest.raises(errors.UnexpectedStatus, match="307"):
                await anext(aiter(client.stream("Hi")))
        async with Client(server.url, credentials=credentials, clock=FakeClock().clock) as client:
            with pytest.raises(errors.UnexpectedStatus, match="307"):
                await client.card()
    assert other.asked == []


@pytest.mark.parametrize("place", ["http://xn--zz--/", "mailto:a@b", "http://["])
async def test_a_redirect_to_an_address_that_is_not_valid_is_reported(place: str) -> None:
    async with faulty(plain(307, Location=place)) as server, rpc(server, FakeClock()) as client:
        for asking in (client.get_task("t"), anext(aiter(client.stream("Hi")))):
            with pytest.raises((errors.UnexpectedStatus, errors.InvalidResponse)):
                await asking
    async with faulty(plain(307, Location=place)) as tokens:
        with pytest.raises(errors.NoToken):
            await ClientCredentials(tokens.url, "me", "s3cret", clock=FakeClock().clock).headers()


@pytest.mark.parametrize("binding", [RPC, REST, SOCKET])
@pytest.mark.parametrize("user", ["me:s3cret@", "me@", "@"])
async def test_an_interface_with_a_user_in_its_address_is_not_called(binding: str, user: str) -> None:
    wires: dict[str, Any] = {}
    async with faulty(serving(wires)) as server, Client(server.url, token="mine") as client:
        url = server.url.replace("http", "ws" if binding == SOCKET else "http")
        wires["/.well-known/agent-card.json"] = card((binding, "1.0", url.replace("//", f"//{user}")))
        for asking in (client.get_task("t"), anext(aiter(client.stream("Hi")))):
            with pytest.raises(errors.InvalidCall, match="has a user name") as caught:
                await asking
            assert "s3cret" not in str(caught.value)
    assert [asked.verb for asked in server.asked] == ["GET"]


async def test_a_token_endpoint_that_redirects_gets_the_secret_alone() -> None:
    fake = FakeClock()
    async with faulty(result(task())) as other, faulty(plain(307, Location=other.url + "/")) as tokens:
        credentials = ClientCredentials(tokens.url, "me", "s3cret", clock=fake.clock)
        with pytest.raises(errors.NoToken, match="status 307"):
            await credentials.headers()
    assert other.asked == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"access_token": ""}', "an empty token"),
        (b'{"access_token": "' + b"x" * 2_000_000 + b'"}', "more than 1000000 bytes"),
        (b"[]", "is no grant"),
        (b'{"access_token": "a", "token_type": "mac"}', "tokens of the type mac"),
    ],
)
async def test_an_answer_of_a_token_endpoint_that_is_no_grant_is_refused(body: bytes, why: str) -> None:
    async with faulty(plain(200, body)) as tokens:
        with pytest.raises(errors.NoToken, match=why):
            await ClientCredentials(tokens.url, "me", "s3cret", clock=FakeClock().clock).headers()


# ------------------------------------------------------------------- size


def bomb(layers: int) -> bytes:
    body = b" " * 30_000_000
    for _ in range(layers):
        body = gzip.compress(body)
    return body


@pytest.mark.parametrize(
    ("coding", "layers", "why"),
    [
        pytest.param("gzip", 1, "more than 1000000 bytes|one event has more", id="one layer"),
        pytest.param("gzip, gzip", 2, "compressed by gzip, gzip, which was not offered", id="two layers"),
        pytest.param("br", 0, "compressed by br", id="another compression"),
        pytest.param("gzip", 0, "is not compressed as its header says", id="none"),
    ],
)
@pytest.mark.parametrize("media", ["application/json", "text/event-stream"])
async def test_a_small_answer_that_becomes_a_large_one_is_not_read(
    coding: str, layers: int, why: str, media: str
) -> None:
    act = written(f"{HEAD}{media}\r\nContent-Encoding: {coding}", bomb(layers)[:50_000])
    async with faulty(act) as server, rpc(server, FakeClock(), largest=1_000_000) as client:
        asking = client.get_task("t") if media == "application/json" else anext(aiter(client.stream("Hi")))
        with pytest.raises(errors.InvalidResponse, match=why):
            await asking
    assert len(server.asked) == 1


async def test_an_answer_may_be_compressed() -> None:
    body = gzip.compress(orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": task(texts=["x" * 200_000])}))
    async with faulty(plain(200, body, Content_Encoding="gzip")) as server, rpc(server, FakeClock()) as client:
        (artifact,) = (await client.get_task("t")).artifacts
    assert artifact.parts[0].text == "x" * 200_000
    assert server.asked[0].headers["accept-encoding"] == "gzip"


# ------------------------------------------------------------------- time


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(written(f"{HEAD}application/json", b" ", slowly=True), id="a body"),
        pytest.param(written("HTTP/1.1 200 OK\r\nX: ", b"x", slowly=True), id="a header"),
    ],
)
async def test_an_answer_that_never_ends_is_given_up_in_time(act: Act) -> None:
    limits = {"timeouts": Timeouts(request=0.2, silence=0.2), "retries": Retries(times=0)}
    begin = time.monotonic()
    async with faulty(act) as server, rpc(server, FakeClock(), **limits) as client:
        with pytest.raises(errors.Timeout):
            await client.get_task("t")
        with pytest.raises(errors.Timeout):
            await anext(aiter(client.stream("Hi")))
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("wish", [b"9" * 4_000, b"999999999999", b"60000"])
async def test_a_stream_pauses_no_longer_than_the_caller_allows(wish: bytes) -> None:
    async with streaming(streamed(b"id: 1", b"retry: " + wish), events(("2", END))) as (updates, _, fake):
        assert [update.id for update in updates] == ["1", "2"]
        assert fake.pauses == [30.0]


async def test_a_stream_whose_server_asks_for_a_long_pause_says_so() -> None:
    fake = FakeClock()
    script = [events(("1", BEGIN)), plain(503, Retry_After="999999999"), events(("2", END))]
    async with faulty(*script) as server, rpc(server, fake) as client:
        stream = client.stream("Hi")
        with pytest.raises(errors.Unavailable) as caught:
            [update async for update in stream]
    assert (caught.value.retry_after, fake.pauses, stream.last_id) == (999999999.0, [0.1], "1")


@pytest.mark.parametrize(
    "header", ["1e9", "-5", "5.5", "a,b", "\u00b2", "Mon, 01 Jan 0001 00:00:00 GMT", "Wed, 21 Oct 2099"]
)
async def test_a_retry_after_that_is_no_number_and_no_later_date_is_ignored(header: str) -> None:
    fake = FakeClock()
    async with faulty(plain(503, Retry_After=header), result(task())) as server, rpc(server, fake) as client:
        await client.get_task("t")
    assert fake.pauses == [0.1]


async def test_a_handshake_that_is_refused_with_a_header_twice_is_reported() -> None:
    twice = "Retry-After: 7\r\nRetry-After: 8\r\nContent-Type: a/b\r\nContent-Type: a/c\r\n"
    async with faulty(written(f"HTTP/1.1 503 Unavailable\r\n{twice}Content-Length: 0")) as server:
        interface = Interface(url=server.url.replace("http", "ws"), binding=SOCKET, version="1.0")
        async with Client("", interface=interface, retries=Retries(times=0)) as client:
            with pytest.raises(errors.Unavailable) as caught:
                await client.get_task("t")
    assert caught.value.retry_after == 7


# ------------------------------------------------------------------ frames


@pytest.mark.parametrize("name", ["\u00e9", "\x1b[2J", "x" * 200_000], ids=["no ASCII", "control", "long"])
async def test_an_id_that_no_header_can_carry_counts_as_none(name: str) -> None:
    again = events((None, {"task": task(DONE)}))
    async with streaming(streamed(b"id: " + name.encode()), again) as (updates, server, _):
        assert [update.id for update in updates] == [None, None]
        assert "last-event-id" not in server.asked[1].headers


@pytest.mark.parametrize("charset", ["utf-16", "zlib_codec", "hex", "idna", "undefined", "nonsense"])
async def test_a_stream_is_utf_8_whatever_it_says(charset: str) -> None:
    act = streamed(b"id: 1", media=f"Text/Event-Stream; charset={charset}")
    async with streaming(act, events(("2", END))) as (updates, _, _):
        assert [update.id for update in updates] == ["1", "2"]


async def test_an_answer_to_another_call_is_not_taken() -> None:
    other = {"jsonrpc": "2.0", "id": 77, "result": task()}
    async with faulty(plain(200, orjson.dumps(other))) as server, rpc(server, FakeClock()) as client:
        with pytest.raises(errors.InvalidResponse, match="the id of another call"):
            await client.get_task("t")
    for name in (None, "1", 1):
        body = orjson.dumps(other | {"id": name})
        async with faulty(plain(200, body)) as server, rpc(server, FakeClock()) as client:
            assert (await client.get_task("t")).id == "t"


async def test_data_that_is_nested_deeply_is_read_or_refused() -> None:
    for depth in (50, 1_000, 100_000):
        data = b'{"a":' * depth + b"1" + b"}" * depth
        body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": {"task": task(texts=["x"])}})
        act = plain(200, body.replace(b'{"text":"x"}', b'{"data":' + data + b"}"))
        async with faulty(act) as server, rpc(server, FakeClock()) as client:
            if depth == 50:
                await client.send("Hi")
                continue
            with pytest.raises(errors.InvalidResponse):
                await client.send("Hi")


async def test_an_event_that_a_server_repeats_is_given_once() -> None:
    script = [
        events(("1", BEGIN), ("2", chunk("a")), ("2", chunk("a")), ("3", chunk("b")), ("1", BEGIN), ("2", chunk("a"))),
        events(("3", {"task": task(WORKING, ["ab"])}), ("2", chunk("a")), ("3", chunk("b")), ("4", chunk("c"))),
        events(("4", {"task": task(WORKING, ["abc"])}), ("5", END)),
    ]
    async with streaming(*script) as (updates, server, _):
        assert [update.id for update in updates] == ["1", "2", "3", "4", "5"]
        assert "".join(update.text for update in updates) == "abc"
        assert [asked.headers.get("last-event-id") for asked in server.asked] == [None, "3", "4"]


@pytest.mark.parametrize(
    "ids",
    [
        pytest.param(["1700000000000", "1700000000001", "1700000000001", "1700000000001"], id="times"),
        pytest.param(["1", "1", "1", "1"], id="the id of the call"),
        pytest.param(["7", "3", "5", "1"], id="no order"),
        pytest.param(["a", "b", "a", "b"], id="names"),
    ],
)
async def test_ids_that_do_not_count_events_hide_none(ids: list[str]) -> None:
    frames = zip(ids, [BEGIN, chunk("a"), chunk("a"), END], strict=True)
    async with streaming(events(*frames)) as (updates, _, _):
        assert [update.text for update in updates] == ["", "a", "a", ""]


def test_ids_that_begin_anew_with_each_connection_hide_no_event() -> None:
    numbers = Numbers()
    first = [numbers.repeat(text, first=False) for text in ("0", "1", "2")]
    second = [numbers.repeat(text, first=place == 0) for place, text in enumerate(("0", "1", "2", "3"))]
    assert not any(first + second)


# ------------------------------------------------------------------- cards


@pytest.mark.parametrize("tokens", [["again"], ["a", "b", "c"]])
async def test_a_page_of_tasks_that_leads_back_ends_the_list(tokens: list[str]) -> None:
    pages = [result({"tasks": [task()], "nextPageToken": token, "totalSize": 9}) for token in [*tokens, tokens[0]]]
    async with faulty(*pages) as server, rpc(server, FakeClock()) as client:
        with pytest.raises(errors.InvalidResponse, match="leads back"):
            [one async for one in client.all_tasks()]
    assert len(server.asked) == len(pages)


@pytest.mark.parametrize("body", [b"", b'{"error":{"code":404,"message":"Method not found: there is nothing here"}}'])
async def test_an_agent_without_a_card_is_reported_as_such(body: bytes) -> None:
    async with faulty(plain(404, body)) as server, Client(server.url) as client:
        with pytest.raises(
            errors.UnexpectedStatus, match=r"there is no agent card at this .*Check the address"
        ) as caught:
            await client.card()
    assert caught.value.status == 404


async def test_many_streams_leave_connections_for_calls() -> None:
    async def act(asked: Asked, writer: Any) -> None:
        stream = asked.wire["method"] == "SendStreamingMessage"
        await (events(("1", BEGIN), silent=True) if stream else result(task()))(asked, writer)

    async with faulty(act) as server, rpc(server, FakeClock()) as client:
        streams = [client.stream("Hi") for _ in range(110)]
        for stream in streams:
            assert (await anext(aiter(stream))).id == "1"
        assert (await client.get_task("t")).id == "t"
        for stream in streams:
            await stream.close()


async def test_a_stream_falls_back_to_an_older_version_as_a_call_does() -> None:
    refusal = plain(
        200, orjson.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32009, "message": "Version not supported"}})
    )
    for allowed in (True, False):
        async with faulty(plain(500)) as server:
            wire = card((RPC, "1.0", server.url + "/a"), (RPC, "0.3", server.url + "/b"))
            old = {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "old"}]}
            envelope = orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": old})
            answer = written(f"{HEAD}text/event-stream", b"data: " + envelope + b"\n\n")
            server.script[:] = [serving({"/.well-known/agent-card.json": wire}), refusal, answer]
            async with Client(server.url, downgrade=allowed, clock=FakeClock().clock) as client:
                if allowed:
                    assert [update.text async for update in client.stream("Hi")] == ["old"]
                    continue
                with pytest.raises(errors.VersionNotSupported):
                    await anext(aiter(client.stream("Hi")))
