"""Requests that offer another protocol, such as HTTP/2, on a real server: answered with their bodies, in HTTP/1.1."""

import json
import socket
import time
from collections.abc import Callable, Iterator

import httptools
import pytest

from tasks_app.process.connections import MAX_PIPELINE, MAX_TINY
from tasks_app.process.head_limits import HEAD_BYTES
from tasks_app.process.upgrades import head_without_offer
from tests.conftest import SLACK, TIMES, Server
from tests.support.sockets import head, received, status, wire

H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAA")
"""The offer of Java's HttpClient, and of `curl --http2`."""
OFFERS = {
    "h2c": H2C,
    "websocket": ("Connection: Upgrade", "Upgrade: websocket"),
    "TLS": ("Connection: Upgrade", "Upgrade: TLS/1.0, h2c"),
    "another order": ("UPGRADE: h2c", "connection: keep-alive,upgrade"),
    "twice": ("Connection: Upgrade", "Upgrade: h2c", "Upgrade: websocket", "Connection: keep-alive"),
    "to close": ("Connection: close, Upgrade", "Upgrade: h2c"),
}
SOCKET = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==",
)
LIMIT = 1_000_000
"""The limit for bodies."""
Form = Callable[..., bytes]
"""A function that returns a request to a server, with a body and further fields."""


def call(id: str, size: int = 0) -> bytes:
    """Return the body of a call that lists tasks, filled up to a size with spaces."""
    wire = {"jsonrpc": "2.0", "id": id, "method": "ListTasks", "params": {"pageSize": 1}}
    return json.dumps(wire).encode().ljust(size)


def in_chunks(body: bytes, size: int = 100) -> bytes:
    pieces = [body[place : place + size] for place in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def top(server: Server, *fields: str, path: str = "/jsonrpc", version: str = "1.1") -> bytes:
    named = (f"Authorization: Bearer {server.owner}", "Content-Type: application/json")
    return head(f"POST {path} HTTP/{version}", *named, *fields)


def with_length(server: Server, body: bytes, *fields: str) -> bytes:
    return top(server, *fields, f"Content-Length: {len(body)}") + body


def with_chunks(server: Server, body: bytes, *fields: str) -> bytes:
    return top(server, *fields, "Transfer-Encoding: chunked") + in_chunks(body)


def answers(connection: socket.socket) -> list[object]:
    """Return the ids in the answers until the server closes. Each must be a result."""
    return [wire["id"] for wire in bodies(received(connection)) if "result" in wire]


def bodies(data: bytes) -> Iterator[dict[str, object]]:
    while data:
        top, _, data = data.partition(b"\r\n\r\n")
        assert status(top) == 200, top
        fields = dict(line.lower().split(b": ", 1) for line in top.split(b"\r\n")[1:])
        size = int(fields[b"content-length"])
        yield json.loads(data[:size])
        data = data[size:]


# ------------------------------------------------------------------------ answers


@pytest.mark.parametrize("form", [with_length, with_chunks])
@pytest.mark.parametrize("name", OFFERS)
def test_an_offer_is_ignored_and_its_call_answered(server: Server, name: str, form: Form) -> None:
    last = form(server, call("last"), "Connection: close")
    with wire(server) as connection:
        connection.sendall(form(server, call("first"), *OFFERS[name]))
        if name != "to close":
            connection.sendall(last)
        assert answers(connection) == ["first", "last"][: 1 if name == "to close" else 2]


@pytest.mark.parametrize("form", [with_length, with_chunks])
@pytest.mark.parametrize("step", [1, 7, 300])
def test_a_body_may_come_long_after_the_offer(server: Server, form: Form, step: int) -> None:
    data = form(server, call("first"), *H2C) + form(server, call("last"), "Connection: close")
    with wire(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for place in range(0, len(data), step):
            connection.sendall(data[place : place + step])
            time.sleep(0.0005 if step == 1 else 0.01)
        assert answers(connection) == ["first", "last"]


def test_a_body_of_many_reads_arrives_whole(server: Server) -> None:
    body = call("large", 900_000)
    with wire(server) as connection:
        connection.sendall(with_length(server, body, *H2C) + with_chunks(server, call("last"), "Connection: close"))
        assert answers(connection) == ["large", "last"]


def test_calls_behind_an_offer_are_answered_in_order(server: Server) -> None:
    forms = [with_length, with_chunks] * 4
    data = b"".join(form(server, call(str(number)), *H2C) for number, form in enumerate(forms))
    data += with_length(server, call("plain")) + with_length(server, call("last"), "Connection: close")
    with wire(server) as connection:
        connection.sendall(data)
        assert answers(connection) == [*map(str, range(8)), "plain", "last"]


def test_an_offer_in_http_1_0_is_ignored_too(server: Server) -> None:
    for offer in (H2C, OFFERS["websocket"]):
        body = call("old")
        with wire(server) as connection:
            connection.sendall(top(server, *offer, f"Content-Length: {len(body)}", version="1.0") + body)
            assert answers(connection) == ["old"]


def test_a_client_that_offers_and_asks_first_is_told_to_continue(server: Server) -> None:
    body = call("asks")
    with wire(server) as connection:
        connection.sendall(top(server, *OFFERS["to close"], "Expect: 100-continue", f"Content-Length: {len(body)}"))
        assert connection.recv(1_000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert answers(connection) == ["asks"]


def test_a_get_and_a_form_may_offer_as_well(server: Server) -> None:
    form = b"username=nobody&password=wrong"
    fields = (f"Content-Length: {len(form)}", "Content-Type: application/x-www-form-urlencoded", "Connection: close")
    with wire(server) as connection:
        connection.sendall(head("GET /healthz HTTP/1.1", *H2C))
        connection.sendall(head("POST /admin/login/ HTTP/1.1", *H2C, *fields) + form)
        answer = received(connection)
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"403"]  # without a CSRF token


def test_a_stream_may_begin_with_an_offer(server: Server) -> None:
    message = {"messageId": f"m{time.monotonic()}", "role": "ROLE_USER", "parts": [{"text": "x"}]}
    params = {"message": message, "metadata": {"agent": "echo"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}).encode()
    with wire(server) as connection:
        connection.sendall(with_length(server, body, *H2C) + with_length(server, call("last"), "Connection: close"))
        stream, _, behind = received(connection).partition(b"\r\n0\r\n\r\n")
    assert b"text/event-stream" in stream
    assert b"TASK_STATE_COMPLETED" in stream
    assert [wire["id"] for wire in bodies(behind)] == ["last"]


# --------------------------------------------------------------- limits, refusals


def test_a_body_behind_an_offer_is_never_read_as_a_request(server: Server) -> None:
    hidden = head("GET /healthz HTTP/1.1", "Connection: close")
    for form in (with_length, with_chunks):
        with wire(server) as connection:
            connection.sendall(form(server, hidden, *H2C) + with_length(server, call("last"), "Connection: close"))
            first, last = bodies(received(connection))
        assert isinstance(error := first["error"], dict)
        assert (error["code"], last["id"]) == (-32700, "last")


def test_an_unknown_key_with_an_offer_is_refused_as_usual(server: Server) -> None:
    for body in (call("x"), call("x", 200_000)):
        fields = ("Content-Type: application/json", f"Content-Length: {len(body)}", "Authorization: Bearer wrong")
        with wire(server) as connection:
            connection.sendall(head("POST /jsonrpc HTTP/1.1", *OFFERS["to close"], *fields) + body)
            assert status(received(connection)) == 401


@pytest.mark.parametrize("field", [f"Content-Length: {LIMIT + 1}", "Transfer-Encoding: chunked"])
def test_too_large_a_body_behind_an_offer_is_refused(server: Server, field: str) -> None:
    with wire(server) as connection:
        connection.sendall(top(server, *H2C, field))
        for _ in range(18 if "chunked" in field else 0):
            connection.sendall(b"10000\r\n" + b" " * 65_536 + b"\r\n")
        assert status(received(connection)) == 413


def test_a_body_behind_an_offer_has_its_time(server: Server) -> None:
    began = time.monotonic()
    with wire(server) as connection:
        connection.sendall(top(server, *H2C, "Content-Length: 100") + b"half")
        assert status(received(connection)) == 408
    assert time.monotonic() - began < TIMES["A2A_BODY_SECONDS"] + SLACK


@pytest.mark.parametrize(
    ("field", "rest", "expected"),
    [
        ("X: " + "y" * HEAD_BYTES, b"", 431),
        ("Transfer-Encoding: chunked", b"1\r\nx\r\n" * (MAX_TINY + 1), 400),
        ("Transfer-Encoding: chunked", b"0\r\n" + b"a:b\r\n" * 2_000, 431),
        ("Transfer-Encoding: gzip", b"", 400),
        ("Content-Length: 2\r\nContent-Length: 2", b"{}", 400),
        ("Content-Length: 2\r\nTransfer-Encoding: chunked", b"2\r\n{}\r\n0\r\n\r\n", 400),
        ("Host: other", b"", 400),
    ],
    ids=["a head", "tiny pieces", "trailers", "no chunks", "two lengths", "a length and chunks", "two Hosts"],
)
def test_the_limits_hold_behind_an_offer(server: Server, field: str, rest: bytes, expected: int) -> None:
    with wire(server) as connection:
        connection.sendall(top(server, *H2C, field) + rest)
        assert status(received(connection)) == expected


def test_only_so_many_offers_may_wait_on_a_connection(server: Server) -> None:
    with wire(server) as connection:
        connection.sendall(head("GET /healthz HTTP/1.1", *H2C) * 3 * MAX_PIPELINE)
        assert received(connection).count(b"HTTP/1.1 200") < 2 * MAX_PIPELINE


def test_an_offer_in_a_trailer_is_none(server: Server) -> None:
    trailers = "\r\n".join(H2C).encode()
    chunks = in_chunks(call("first")).removesuffix(b"\r\n") + trailers + b"\r\n\r\n"
    with wire(server) as connection:
        connection.sendall(top(server, *H2C, "Transfer-Encoding: chunked") + chunks)
        connection.sendall(with_length(server, call("last"), "Connection: close"))
        assert answers(connection) == ["first", "last"]


# --------------------------------------------------------------------- WebSocket


@pytest.mark.parametrize("field", ["Content-Length: 2", "Content-Length: 00002", "Transfer-Encoding: chunked"])
def test_a_handshake_with_a_body_is_refused_and_no_more_is_read(server: Server, field: str) -> None:
    with wire(server) as connection:
        connection.sendall(head("GET /ws HTTP/1.1", f"Authorization: Bearer {server.owner}", *SOCKET, field))
        connection.sendall(with_length(server, call("hidden"), "Connection: close"))
        answer = received(connection)
    assert status(answer) == 400
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"a WebSocket must have no body" in answer


@pytest.mark.parametrize("more", [(), ("Content-Length: 0",)], ids=["usual", "a length of 0"])
def test_a_handshake_behind_an_offer_opens_a_socket(server: Server, more: tuple[str, ...]) -> None:
    with wire(server) as connection:
        connection.sendall(head("GET /healthz HTTP/1.1", *H2C))
        answer = b""
        while not answer.endswith(b"}") and (chunk := connection.recv(65_536)):
            answer += chunk
        assert status(answer) == 200
        connection.sendall(head("GET /ws HTTP/1.1", f"Authorization: Bearer {server.owner}", *SOCKET, *more))
        assert status(connection.recv(65_536)) == 101


def test_a_handshake_of_http_1_0_is_no_handshake(server: Server) -> None:
    with wire(server) as connection:
        connection.sendall(head("GET /ws HTTP/1.0", f"Authorization: Bearer {server.owner}", *SOCKET))
        assert status(received(connection)) == 404


@pytest.mark.parametrize("target", ["127.0.0.1:80", "/jsonrpc"])
def test_a_request_for_a_tunnel_is_refused(server: Server, target: str) -> None:
    with wire(server) as connection:
        connection.sendall(head(f"CONNECT {target} HTTP/1.1", *H2C) + head("GET /healthz HTTP/1.1"))
        answer = received(connection)
    assert status(answer) in {400, 501}
    assert answer.count(b"HTTP/1.1 ") == 1


class Fields:
    """The fields of a head, with their names in lower case."""

    def __init__(self) -> None:
        self.fields: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name.lower(), value))


def test_the_head_without_its_offer_keeps_every_other_byte() -> None:
    fields = Fields()
    parser = httptools.HttpRequestParser(fields)
    parser.feed_data(b"PUT /a?b%20 HTTP/1.1\r\nUPGRADE: h2c\r\nHost:x\r\nA:  b \xe4 \r\nConnection: upgrade\r\nB:\r\n")
    with pytest.raises(httptools.HttpParserUpgrade):
        parser.feed_data(b"\r\n")
    expected = b"PUT /a?b%20 HTTP/1.1\r\nhost: x\r\na: b \xe4 \r\nconnection: upgrade\r\nb: \r\n\r\n"
    assert head_without_offer(parser, b"/a?b%20", fields.fields) == expected
