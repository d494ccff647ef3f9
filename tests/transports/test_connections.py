"""Heads, trailers and bodies that do not end, on every path of a real server: counted while they arrive."""

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tasks_app.process.connections import MAX_PIPELINE
from tasks_app.process.head_limits import HEAD_BYTES, MAX_FIELDS
from tests.conftest import SLACK, TIMES, Server
from tests.support.sockets import head, received, status, wire

PATHS = ["/jsonrpc", "/admin/login/", "/static/x", "/nothing/here", "/v1/message:send", "/healthz"]
SEVERAL_READS = 600_000
"""Bytes that do not come at once: the parser keeps what is open at the end of each read."""
ENOUGH = 30_000_000
"""Bytes after which an attack is given up: nothing has stopped it. The kernel takes several MB by itself while a busy
machine keeps the server from reading."""


def keyed(server: Server, *fields: str) -> bytes:
    key = f"Authorization: Bearer {server.owner}"
    return head("POST /jsonrpc HTTP/1.1", key, "Content-Type: application/json", *fields)


def poured(connection: socket.socket, piece: bytes, most: int = ENOUGH) -> int:
    """Count the bytes taken before the connection was closed."""
    sent = 0
    with suppress(OSError):
        while sent < most:
            sent += connection.send(piece)
            time.sleep(0.0005)  # the server shares the processors
    return sent


def spooled(server: Server) -> int:
    """Return bytes of temporary files without a name that the server has open."""
    total = 0
    for link in Path(f"/proc/{server_pid(server)}/fd").iterdir():
        with suppress(OSError):
            if "(deleted)" in os.readlink(link):  # noqa: PTH115  # the target is no path
                total += link.stat().st_size
    return total


def server_pid(server: Server) -> int:
    """Return the process that listens on the server's port."""
    inodes = set()
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        columns = line.split()
        if columns[1].endswith(f":{server.port:04X}") and columns[3] == "0A":
            inodes.add(f"socket:[{columns[9]}]")
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(os.readlink(link) in inodes for link in (folder / "fd").iterdir()):  # noqa: PTH115
                return int(folder.name)
    raise AssertionError("nobody listens")


# ------------------------------------------------------------------------ bodies


@pytest.mark.parametrize("path", PATHS)
def test_a_body_without_end_is_refused_on_every_path(server: Server, path: str) -> None:
    with wire(server) as connection:
        connection.sendall(head(f"POST {path} HTTP/1.1", "Transfer-Encoding: chunked"))
        sent = poured(connection, b"10000\r\n" + b"x" * 65_536 + b"\r\n", 2_000_000)
        assert status(received(connection)) in {401, 413}
    assert sent >= 1_000_000 or path not in {"/admin/login/", "/static/x", "/nothing/here"}
    assert spooled(server) == 0


@pytest.mark.parametrize("path", PATHS[:2])
def test_a_refused_client_has_the_whole_answer_while_it_still_sends(server: Server, path: str) -> None:
    with wire(server) as connection:
        connection.sendall(head(f"POST {path} HTTP/1.1", "Content-Length: 2000000") + b" " * 100)
        reader = connection.makefile("rb")
        fields = list(iter(reader.readline, b"\r\n"))
        lengths = [int(field.split()[1]) for field in fields if field.lower().startswith(b"content-length:")]
        assert b"413" in fields[0]
        assert b"1000000" in reader.read(*lengths)
        connection.sendall(b" " * 100_000)
        assert reader.read() == b""


@pytest.mark.parametrize("path", ["/admin/login/", "/nothing/here"])
def test_a_body_that_stalls_is_given_up_on_paths_of_django(server: Server, path: str) -> None:
    began = time.monotonic()
    with wire(server) as connection:
        connection.sendall(head(f"POST {path} HTTP/1.1", "Content-Length: 100") + b"half")
        answer = received(connection)
    assert status(answer) == 408
    assert b"did not arrive" in answer
    assert time.monotonic() - began < TIMES["A2A_BODY_SECONDS"] + SLACK


def test_a_form_of_the_admin_still_arrives(server: Server) -> None:
    form = b"username=nobody&password=wrong&padding=" + b"x" * 200_000
    with wire(server) as connection:
        fields = [
            f"Content-Length: {len(form)}",
            "Content-Type: application/x-www-form-urlencoded",
            "Connection: close",
        ]
        connection.sendall(head("POST /admin/login/ HTTP/1.1", *fields) + form)
        assert status(received(connection)) == 403  # without a CSRF token


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=b", "Multipart/Mixed; boundary=b"])
def test_a_form_in_parts_is_refused_unread(server: Server, kind: str) -> None:
    with wire(server) as connection:
        fields = [f"Content-Type: {kind}", "Content-Length: 900000", f"Cookie: csrftoken={'a' * 32}"]
        connection.sendall(head("POST /admin/login/ HTTP/1.1", *fields))
        assert status(received(connection)) == 415


# ---------------------------------------------------------------- heads and trailers


def trailers(server: Server) -> bytes:
    return head("POST /jsonrpc HTTP/1.1", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n"


def streamed(server: Server, agent: str = "waits") -> bytes:
    """Return the request of a stream: the agent waits."""
    message = {"messageId": f"m{time.monotonic()}", "role": "ROLE_USER", "parts": [{"text": "x"}]}
    params = {"message": message, "metadata": {"agent": agent}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}).encode()
    return keyed(server, f"Content-Length: {len(body)}") + body


def behind_a_stream(server: Server) -> bytes:
    """Return a stream, and the beginning of the next head."""
    return streamed(server) + b"GET / HTTP/1.1\r\nHost: x\r\n"


ENDLESS: dict[str, tuple[Callable[[Server], bytes], bytes]] = {
    "fields": (lambda _: b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-Filler: " + b"y" * 8_000 + b"\r\n"),
    "empty fields": (lambda _: b"GET / HTTP/1.1\r\nHost: x\r\n", b"a:\r\n" * 2_000),
    "a field": (lambda _: b"GET / HTTP/1.1\r\nHost: x\r\nX-Filler: ", b"y" * 8_000),
    "a name": (lambda _: b"GET / HTTP/1.1\r\nHost: x\r\nX", b"y" * 8_000),
    "a path": (lambda _: b"GET /", b"y" * 8_000),
    "empty lines": (lambda _: b"", b"\r\n" * 4_000),
    "trailers": (trailers, b"a:b\r\n" * 2_000),
    "a trailer": (lambda server: trailers(server) + b"a:", b"b" * 8_000),
    "a chunk's extension": (
        lambda _: head("POST /jsonrpc HTTP/1.1", "Transfer-Encoding: chunked") + b"2;",
        b"x" * 8_000,
    ),
    "a head behind a stream": (behind_a_stream, b"X-Filler: " + b"y" * 8_000 + b"\r\n"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_request_without_end_is_not_read(server: Server, name: str) -> None:
    begin, piece = ENDLESS[name]
    with wire(server) as connection:
        connection.settimeout(SLACK)  # behind a stream nothing more is taken, and the connection stays open
        connection.sendall(begin(server))
        assert poured(connection, piece) < ENOUGH


@pytest.mark.parametrize(
    ("start", "expected", "most"),
    [
        (b"GET /" + b"y" * HEAD_BYTES + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, HEAD_BYTES),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * HEAD_BYTES + b"\r\n\r\n", 431, HEAD_BYTES),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a:\r\n" * MAX_FIELDS + b"\r\n", 431, MAX_FIELDS),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * SEVERAL_READS, 431, HEAD_BYTES),
        (head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + b"0\r\nX: " + b"y" * SEVERAL_READS, 431, HEAD_BYTES),
        (head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + b"0\r\n" + b"a:\r\n" * 130, 431, MAX_FIELDS),
    ],
    ids=["path", "field", "many fields", "a field without end", "a trailer", "many trailers"],
)
def test_too_large_a_head_is_told_so(server: Server, start: bytes, expected: int, most: int) -> None:
    with wire(server) as connection:
        connection.sendall(start)
        answer = received(connection)
    assert status(answer) == expected
    assert str(most).encode() in answer


LARGEST = [("X: " + "y" * 30_000, b""), ("Transfer-Encoding: chunked", b"0\r\n" + b"a:\r\n" * MAX_FIELDS + b"\r\n")]


@pytest.mark.parametrize(("field", "rest"), LARGEST, ids=["a field", "trailers"])
def test_a_head_within_the_limits_is_taken(server: Server, field: str, rest: bytes) -> None:
    with wire(server) as connection:
        connection.sendall(head("GET /healthz HTTP/1.1", field, "Connection: close") + rest)
        assert status(received(connection)) == 200


@pytest.mark.parametrize(
    ("piece", "expected"), [(b"1\r\nx\r\n", 400), (b"1;" + b"e" * 200 + b"\r\nx\r\n", 431)], ids=["tiny", "extensions"]
)
def test_the_bytes_around_the_pieces_of_a_body_are_bounded(server: Server, piece: bytes, expected: int) -> None:
    with wire(server) as connection:
        connection.sendall(keyed(server, "Transfer-Encoding: chunked") + piece * (200_000 // len(piece)))
        assert status(received(connection)) == expected


def test_a_body_in_a_thousand_small_pieces_is_read(server: Server) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}).encode()
    body += b" " * (1_000 - len(body)) + b" " * 30_000
    pieces = [body[place : place + 1] for place in range(1_000)] + [
        body[place : place + 20] for place in range(1_000, len(body), 20)
    ]
    whole = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    with wire(server) as connection:
        connection.sendall(keyed(server, "Transfer-Encoding: chunked", "Connection: close") + whole)
        assert status(received(connection)) == 200


@pytest.mark.parametrize("name", ["Authorization: Bearer", "X-API-Key:"])
def test_a_key_in_a_trailer_opens_nothing(server: Server, name: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}).encode()
    top = head(
        "POST /jsonrpc HTTP/1.1", "Content-Type: application/json", "Transfer-Encoding: chunked", "Connection: close"
    )
    with wire(server) as connection:
        connection.sendall(
            top + b"%x\r\n%b\r\n0\r\n%b %b\r\n\r\n" % (len(body), body, name.encode(), server.owner.encode())
        )
        assert status(received(connection)) == 401


def test_a_head_behind_a_stream_has_its_time(server: Server) -> None:
    with wire(server) as connection:
        began = time.monotonic()
        connection.sendall(behind_a_stream(server))
        assert b"text/event-stream" in received(connection)
        assert time.monotonic() - began < TIMES["A2A_HEADER_SECONDS"] + SLACK


@pytest.mark.parametrize(
    "start",
    [
        head("GET /healthz HTTP/1.1", host=""),
        head("GET /healthz HTTP/1.1", "Host: evil.example"),
        b"GET /healthz\r\n\r\n",
        head("GET /healthz HTTP/0.9"),
        head("POST /jsonrpc HTTP/1.0", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n",
        head("GET /healthz HTTP/2.0"),
        b"nonsense\r\n\r\n",
    ],
    ids=["no Host", "two Hosts", "HTTP/0.9", "it says 0.9", "chunks in HTTP/1.0", "HTTP/2.0", "nonsense"],
)
def test_a_head_that_can_be_read_in_two_ways_is_refused(server: Server, start: bytes) -> None:
    with wire(server) as connection:
        connection.sendall(start)
        assert status(received(connection)) == 400


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["Transfer-Encoding: gzip, chunked"], 501),
        (["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"], 501),
        (["Transfer-Encoding: chunked, chunked"], 400),
        (["Transfer-Encoding: gzip"], 400),
        (["Transfer-Encoding: chunked, gzip"], 400),
    ],
    ids=["coded chunks", "in two headers", "chunks of chunks", "no chunks", "coded around chunks"],
)
def test_a_body_in_a_transfer_coding_is_refused(server: Server, fields: list[str], expected: int) -> None:
    with wire(server) as connection:
        connection.sendall(head("POST /jsonrpc HTTP/1.1", *fields) + b"2\r\n{}\r\n0\r\n\r\n")
        answer = received(connection)
        assert status(answer) == expected
        # No compressed body is taken (415), so no answer may recommend one.
        assert b"Content-Encoding" not in answer


def test_http_1_0_without_a_host_is_served(server: Server) -> None:
    with wire(server) as connection:
        connection.sendall(head("GET /healthz HTTP/1.0"))
        assert status(received(connection)) == 200


def asked_in_1_0(server: Server, method: str) -> tuple[bytes, bytes]:
    """Return the head and the body of an answer to HTTP/1.0, which takes longer than A2A_PING_SECONDS."""
    parts = [{"data": {"pause": 1.2 * TIMES["A2A_PING_SECONDS"], "words": 20}}]
    message = {"messageId": f"1.0 {method}", "role": "ROLE_USER", "parts": parts}
    params = {"message": message, "metadata": {"agent": "story"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    start = keyed(server, f"Content-Length: {len(body)}").replace(b"HTTP/1.1", b"HTTP/1.0")
    with wire(server) as connection:
        connection.sendall(start + body)
        answer = received(connection)
    assert status(answer) == 200
    fields, _, content = answer.partition(b"\r\n\r\n")
    return fields.lower(), content


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
def test_an_answer_to_http_1_0_has_no_chunks(server: Server, method: str) -> None:
    fields, content = asked_in_1_0(server, method)
    assert b"connection: close" in fields
    assert (b"transfer-encoding" in fields, b"content-length" in fields) == (False, False)
    if method == "SendMessage":
        assert content.startswith(b" ")
        assert json.loads(content)["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    else:
        assert content.startswith(b"retry: ")
        assert content.endswith(b"}\n\n"), "no chunk of size 0 follows"
        assert b"TASK_STATE_COMPLETED" in content


def begun(connection: socket.socket) -> None:
    """Read until the stream has begun: what is sent from now on arrives while it is open."""
    data = b""
    while b"data: " not in data:
        data += connection.recv(65_536)


def test_a_client_that_closes_its_side_has_left(server: Server) -> None:
    with wire(server) as connection:
        connection.sendall(streamed(server))
        begun(connection)
        connection.settimeout(SLACK)  # The agent works for longer.
        connection.shutdown(socket.SHUT_WR)
        assert b"0\r\n\r\n" not in received(connection), "the stream is cut, not ended"


def test_bytes_behind_an_open_stream_stay_with_the_client(server: Server) -> None:
    with wire(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        connection.sendall(streamed(server))
        begun(connection)
        connection.settimeout(0.5)
        # Nothing is taken, and the connection is not closed either.
        with pytest.raises(TimeoutError):
            connection.sendall(b"X-Filler: " + b"y" * ENOUGH)


def test_a_request_behind_a_stream_is_answered_after_it(server: Server) -> None:
    body = b'{"jsonrpc":"2.0","id":"behind","method":"NoSuchMethod"}'
    behind = keyed(server, "Connection: close", f"Content-Length: {len(body)}") + body
    with wire(server) as connection:
        connection.sendall(streamed(server, "sleeper") + behind[:20])
        begun(connection)
        connection.sendall(behind[20:])
        assert b'"id":"behind"' in received(connection).partition(b"\r\n0\r\n\r\n")[2]


def test_a_head_that_came_in_pieces_behind_a_stream_does_not_end_the_stream(server: Server) -> None:
    behind = keyed(server, "Connection: close")
    with wire(server) as connection:
        connection.sendall(streamed(server) + behind[:20])
        begun(connection)
        connection.sendall(behind[20:])
        ends = time.monotonic() + 2 * TIMES["A2A_HEADER_SECONDS"]
        while (left := ends - time.monotonic()) > 0:
            connection.settimeout(left)
            with contextlib.suppress(TimeoutError):
                assert connection.recv(65_536), "the stream was cut"


def test_requests_behind_each_other_are_answered_in_order_up_to_a_limit(server: Server) -> None:
    one = head("GET /healthz HTTP/1.1")
    with wire(server) as connection:
        connection.sendall(one * 10 + head("GET /healthz HTTP/1.1", "Connection: close"))
        assert received(connection).count(b"HTTP/1.1 200") == 11
    with wire(server) as connection:
        connection.sendall(one * 3 * MAX_PIPELINE)
        assert received(connection).count(b"HTTP/1.1 200") < 2 * MAX_PIPELINE


def test_a_client_that_asks_first_is_told_to_continue(server: Server) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}'
    fields = ["Content-Type: application/json", f"Content-Length: {len(body)}", f"Authorization: Bearer {server.owner}"]
    with wire(server) as connection:
        connection.sendall(head("POST /jsonrpc HTTP/1.1", *fields, "Expect: 100-continue", "Connection: close"))
        assert connection.recv(1_000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert status(answer := received(connection)) == 200
        assert b"-32001" in answer


def test_a_client_of_http_1_0_that_asks_first_gets_its_answer_alone(server: Server) -> None:
    start = keyed(server, "Expect: 100-continue", "Content-Length: 2").replace(b"HTTP/1.1", b"HTTP/1.0")
    with wire(server) as connection:
        connection.sendall(start + b"{}")
        assert received(connection).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/healthz", "/admin/login/"])
def test_an_answer_to_head_is_its_head_alone(server: Server, path: str) -> None:
    with wire(server) as connection:
        connection.sendall(head(f"HEAD {path} HTTP/1.1", "Connection: close"))
        answer = received(connection)
    assert status(answer) == 200
    assert answer.endswith(b"\r\n\r\n")
    assert answer.count(b"\r\n\r\n") == 1
