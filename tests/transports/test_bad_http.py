"""Calls that do not reach the RPC layer: refused by a real server while they arrive, and nothing of them is stored."""

import gzip
import json
import socket
import time
from typing import Any

import httpx
import pytest

from tests.conftest import PATIENCE, SLACK, TIMES, Server
from tests.transports.calls import call, refusal, send

pytestmark = pytest.mark.usefixtures("unchanged")

LIMIT = 1_000_000


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/jsonrpc", "/", "/agents/echo/jsonrpc"])
@pytest.mark.requirement("ACP-01")
def test_only_post_is_served(caller: httpx.Client, method: str, path: str) -> None:
    response = caller.request(method, path)
    refusal(response, 405, -32600)
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data; boundary=x"]
)
@pytest.mark.requirement("ACP-01")
def test_another_media_type_is_refused(caller: httpx.Client, kind: str) -> None:
    response = caller.post("/jsonrpc", content=send(), headers={"Content-Type": kind})
    fault = f"not {kind.partition(';')[0]}" if kind else "and the request has none"
    assert refusal(response, 415, -32600)["message"].endswith(f"Content-Type must be application/json, {fault}")


@pytest.mark.parametrize("kind", ["application/a2a+json", "Application/JSON; charset=utf-8", "x/y+json"])
def test_json_of_any_name_is_taken(caller: httpx.Client, kind: str) -> None:
    response = caller.post("/jsonrpc", content=call("nope", {}), headers={"Content-Type": kind})
    assert (response.status_code, response.json()["error"]["code"]) == (200, -32601)


ODD = ["a*=nowhere''x", "a*=x; a*1=y", "charset=utf-8", "charset=nowhere", "charset*=utf-16''x"]
"""Parameters of a media type that Django reads, and that may raise an error in it."""


@pytest.mark.parametrize("parameter", ODD)
def test_parameters_of_a_media_type_do_not_matter(caller: httpx.Client, parameter: str) -> None:
    headers = {"Content-Type": f"application/json; {parameter}"}
    response = caller.post("/jsonrpc?" + "&" * 1_200, content=call("nope", {}), headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (200, -32601)


@pytest.mark.parametrize("parameter", ODD)
@pytest.mark.parametrize("header", ["Content-Type", "Accept"])
def test_parameters_of_a_media_type_break_no_page(caller: httpx.Client, header: str, parameter: str) -> None:
    headers = {header: f"text/html; {parameter}"}
    pages = ["/", "/healthz", "/admin/login/", "/.well-known/agent-card.json"]
    assert all(caller.get(page, headers=headers).status_code in {200, 405} for page in pages)


@pytest.mark.parametrize("parameter", ODD)
@pytest.mark.parametrize("header", ["Content-Type", "Accept"])
def test_parameters_of_a_media_type_break_no_api(caller: httpx.Client, header: str, parameter: str) -> None:
    headers = {"Authorization": "", header: f"application/json; {parameter}"}
    assert caller.get("/api/v1/tasks/", headers=headers).status_code in {401, 406}


def test_a_compressed_body_is_refused(caller: httpx.Client) -> None:
    response = caller.post("/jsonrpc", content=gzip.compress(send()), headers={"Content-Encoding": "gzip"})
    assert "compressed" in refusal(response, 415, -32600)["message"]


@pytest.mark.requirement("ADR-13")
def test_a_million_bytes_are_taken_and_one_more_is_not(caller: httpx.Client) -> None:
    def sized(size: int) -> bytes:
        short = call("nope", {"a": ""})
        return call("nope", {"a": "x" * (size - len(short))})

    refusal(caller.post("/jsonrpc", content=sized(LIMIT)), 200, -32601, 7)
    assert str(LIMIT) in refusal(caller.post("/jsonrpc", content=sized(LIMIT + 1)), 413, -32600)["message"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer nonsense"},
        {"Authorization": "Basic YTpi"},
        {"Authorization": "Bearer " + "x" * 600},
        {"X-API-Key": "nonsense"},
        {"Authorization": "Bearer ä".encode("latin1")},
        {"X-API-Key": "tdk_' or '1'='1"},
    ],
    ids=str,
)
@pytest.mark.requirement("SPARC-11")
def test_without_a_good_key_there_is_a_challenge(server: Server, headers: Any) -> None:
    answers = []
    for body in (send(), call("GetTask", {"id": "t"}), call("nope", id="x")):
        response = httpx.post(
            f"{server.url}/jsonrpc", content=body, headers={"Content-Type": "application/json", **headers}
        )
        refusal(response, 401, -38009, json.loads(body)["id"])
        assert response.headers["www-authenticate"].startswith("Bearer")
        answers.append(response.json()["error"])
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("body", [b"{", b"[]", b"5", b"\xff", b'{"jsonrpc":"1.0","id":1,"method":"x"}', b""], ids=repr)
def test_a_stranger_hears_of_the_key_before_anything_about_the_body(server: Server, body: bytes) -> None:
    for path in ("/jsonrpc", "/message:send", "/v1/message:send"):
        response = httpx.post(server.url + path, content=body, headers={"Content-Type": "application/json"})
        assert (response.status_code, "www-authenticate" in response.headers) == (401, True), path


@pytest.mark.parametrize(
    "given", ["x" * 129, "<script>", "a b", "a\tb", "é".encode(), "", "%0d%0aSet-Cookie: a=b"], ids=str
)
def test_a_hostile_request_id_is_replaced(caller: httpx.Client, given: Any) -> None:
    response = caller.post("/jsonrpc", content=call("nope"), headers={"X-Request-ID": given})
    assert len(response.headers["x-request-id"]) == 36
    assert "set-cookie" not in response.headers


def test_a_harmless_request_id_comes_back(caller: httpx.Client) -> None:
    for body in (call("nope"), b"{", b"[]"):
        response = caller.post("/jsonrpc", content=body, headers={"X-Request-ID": "req.1:a-b_c"})
        assert response.headers["x-request-id"] == "req.1:a-b_c"


@pytest.mark.parametrize(
    "version", ["2.0", "abc", "1", "0.5", "1.0.0.0", "x" * 5_000, "é".encode()], ids=lambda v: repr(v[:9])
)
def test_a_version_that_is_not_spoken_is_refused_in_words(caller: httpx.Client, version: Any) -> None:
    error = refusal(caller.post("/jsonrpc", content=send(), headers={"A2A-Version": version}), 200, -32009, 7)
    assert error["data"][0]["metadata"]["supportedVersions"] == "0.2,0.3,1.0"


# ----------------------------------------------------------------- raw sockets


def raw(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def head(server: Server, *more: str) -> bytes:
    lines = ["POST /jsonrpc HTTP/1.1", f"Host: 127.0.0.1:{server.port}", f"Authorization: Bearer {server.owner}"]
    return "\r\n".join([*lines, "Content-Type: application/json", *more, "", ""]).encode()


def answer(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    """Return status and body, read until the server closes."""
    data = b""
    while chunk := connection.recv(65_536):
        data += chunk
    top, _, body = data.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in top.lower():
        body = body.split(b"\r\n")[1]
    return int(top.split()[1]), json.loads(body)


def test_white_space_behind_a_header_is_no_part_of_it(server: Server) -> None:
    body = call("ListTasks", {"pageSize": 1})
    fields = ("A2A-Version: 1.0 ", "X-Request-ID: req-1\t ", f"Content-Length: {len(body)}", "Connection: close")
    with raw(server) as connection:
        connection.sendall(head(server, *fields) + body)
        status, found = answer(connection)
    assert (status, list(found)) == (200, ["jsonrpc", "id", "result"]), found


def test_a_client_that_asks_first_may_put_white_space_behind_it(server: Server) -> None:
    body = call("ListTasks", {"pageSize": 1})
    with raw(server) as connection:
        connection.sendall(head(server, "Expect: 100-continue ", f"Content-Length: {len(body)}", "Connection: close"))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert answer(connection)[0] == 200


def test_a_length_in_characters_is_answered_with_the_fault(server: Server) -> None:
    """A common fault of clients: the length is that of the text, and the body has more bytes."""
    text = '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"äöü"}}'
    with raw(server) as connection:
        connection.sendall(head(server, f"Content-Length: {len(text)}") + text.encode())
        status, body = answer(connection)
    assert (status, body["error"]["code"]) == (200, -32700)
    assert "unexpected end of data" in body["error"]["message"]


def test_bytes_behind_a_request_do_not_cost_its_answer(server: Server) -> None:
    body = call("ListTasks", {"pageSize": 1})
    with raw(server) as connection:
        connection.sendall(head(server, f"Content-Length: {len(body)}") + body + b"\x00 no request\r\n\r\n")
        status, found = answer(connection)
    assert (status, list(found)) == (200, ["jsonrpc", "id", "result"]), found


def test_too_large_a_body_is_refused_at_its_announcement(server: Server) -> None:
    with raw(server) as connection:
        connection.sendall(head(server, f"Content-Length: {LIMIT + 1}"))
        status, body = answer(connection)
    assert (status, body["error"]["code"], body["id"]) == (413, -32600, None)


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
def test_too_large_a_body_is_refused_while_it_is_sent(server: Server, declared: bool) -> None:
    piece = b" " * 65_536
    with raw(server) as connection:
        connection.sendall(head(server, "Content-Length: 50000000" if declared else "Transfer-Encoding: chunked"))
        for _ in range(20):
            connection.sendall(piece if declared else b"10000\r\n" + piece + b"\r\n")
        status, body = answer(connection)
    assert (status, body["error"]["code"]) == (413, -32600)


def test_a_body_that_stalls_is_given_up(server: Server) -> None:
    began = time.monotonic()
    with raw(server) as connection:
        connection.sendall(head(server, "Content-Length: 100") + b'{"jsonrpc":')
        status, body = answer(connection)
    assert (status, body["error"]["code"]) == (408, -32600)
    assert time.monotonic() - began < TIMES["A2A_BODY_SECONDS"] + SLACK


@pytest.mark.parametrize("trickle", [False, True], ids=["silence", "a byte now and then"])
def test_headers_that_do_not_arrive_close_the_connection(server: Server, trickle: bool) -> None:
    began = time.monotonic()
    with raw(server) as connection:
        connection.sendall(b"POST /jsonrpc HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        connection.settimeout(0.2)
        while True:
            assert time.monotonic() - began < TIMES["A2A_HEADER_SECONDS"] + SLACK
            try:
                if trickle:
                    connection.sendall(b"x")
                if connection.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break


def test_bytes_that_are_not_http_close_their_connection_alone(server: Server, caller: httpx.Client) -> None:
    with raw(server) as connection:
        connection.sendall(b"\x16\x03\x01\0\0\0\r\n\r\n")
        assert b"500" not in connection.recv(1_000).split(b"\r\n")[0]
    refusal(caller.post("/jsonrpc", content=call("nope")), 200, -32601, 7)


def test_an_id_as_long_as_a_book_is_refused(caller: httpx.Client) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": "eyJ" * 100_000, "method": "GetTask", "params": {"id": "x"}})
    assert "1024 characters" in refusal(caller.post("/jsonrpc", content=body), 200, -32600)["message"]
