"""Any bytes to a real server: requests of HTTP and frames of WebSocket, broken anywhere."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import strategies as st

from tests.conftest import NO_TLS, PATIENCE, Server, running_server
from tests.fuzz.calls import FOLLOWS, VERSIONS, Call, adr_calls, envelopes, mutated, path_calls, rpc_calls
from tests.fuzz.exploring import STREAM_SECONDS, explore
from tests.fuzz.judging import fault, is_answer
from tests.fuzz.wire import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    Socket,
    close_code,
    exchange,
    first_answer,
    frame_of,
    request_of,
)

pytestmark = pytest.mark.slow

NO_FAULT = {1000, 1001, 1002, 1003, 1007, 1008, 1009}
"""Codes of a closed WebSocket for what a caller did (RFC 6455, 7.4.1), besides those of this server from 4000 on."""
KEY = "KEY"
"""Stands for the key in what a failure prints."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give a server of its own: tasks of random calls go on for long, and other tests count the rows of theirs."""
    with running_server(tmp_path_factory.mktemp("target"), A2A_STREAM_SECONDS=str(STREAM_SECONDS)) as server:
        yield server


@pytest.fixture
def fuzzed(target: Server) -> Iterator[Server]:
    """Give the server, and check at the end that it is well and has logged no traceback."""
    before = target.log.stat().st_size
    yield target
    assert httpx.get(f"{target.url}/healthz", timeout=PATIENCE, verify=NO_TLS).status_code == 200
    with target.log.open("rb") as log:
        log.seek(before)
        lines = log.read().decode(errors="replace")
    assert not re.search(r"^Traceback|\bERROR\b(?! django\.security)", lines, re.MULTILINE), lines


@st.composite
def requests(draw: st.DrawFn) -> tuple[Call, bytes]:
    """Return a call with its request: as it should be, or, now and then, with bytes changed anywhere.

    The server waits for the rest of a request whose length was changed, so these take long.
    """
    call = draw(rpc_calls() | path_calls() | adr_calls())
    request = request_of(call, KEY)
    return call, draw(mutated(request)) if not draw(st.integers(0, 7)) else request


def test_every_request_gets_an_answer_or_the_end_of_its_connection(fuzzed: Server) -> None:
    def check(value: tuple[Call, bytes]) -> None:
        call, request = value
        secret = request.replace(KEY.encode(), fuzzed.owner.encode())
        is_head = request.startswith(b"HEAD ")
        content = exchange(fuzzed.port, secret, has_body=not is_head)
        answer = first_answer(content)
        is_whole = request == request_of(call, KEY)
        sent = call if is_whole else call._replace(method=None, verb="HEAD" if is_head else "X")
        why = "" if answer is None else fault(sent, answer)
        if is_whole and answer is None:
            why = f"no answer, but {content[:500]!r}"
        assert not why, f"{why}\n{call.curl(fuzzed.url) if is_whole else as_bytes(request, fuzzed.port)}"

    explore(check, requests(), 150)


def test_a_stream_without_an_end_ends_its_connection(fuzzed: Server) -> None:
    answer = first_answer(exchange(fuzzed.port, request_of(FOLLOWS, fuzzed.owner)))
    assert answer is not None
    assert not fault(FOLLOWS, answer)


def test_an_answer_ends_where_its_length_says() -> None:
    first = b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    second = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 1\r\n\r\n?"
    answer = first_answer(first + second)
    assert answer is not None
    assert answer.content == b"{}"


def as_bytes(content: bytes, port: int) -> str:
    """Return the command that sends bytes."""
    text = "".join(f"\\x{byte:02x}" for byte in content)
    return f"printf '%b' '{text}' | nc -N 127.0.0.1 {port}"


@st.composite
def conversations(draw: st.DrawFn) -> list[bytes]:
    """Return what a client sends: frames with calls, with any payload, and frames that are broken."""
    sent = []
    for _ in range(draw(st.integers(1, 3))):
        payload = json.dumps(draw(envelopes(draw(st.sampled_from(VERSIONS))))).encode()
        payload = draw(st.sampled_from([payload, b"[]", b"", b"\xff"]) | mutated(payload))
        frame = frame_of(payload, draw(st.sampled_from([TEXT, TEXT, TEXT, BINARY, PING, 0x0, 0x3, CLOSE])))
        sent.append(draw(mutated(frame)) if not draw(st.integers(0, 3)) else frame)
    return sent


PROBE = "the call after the frames"
"""The id of the call that shows that a connection works."""
_PROBE = frame_of(json.dumps({"jsonrpc": "2.0", "id": PROBE, "method": "GetTask", "params": {"id": "none"}}).encode())
COVERING = bytes([0x80 | PONG, 0x80 | len(_PROBE)]) + b"\0\0\0\0"
"""The head of a frame that covers the call after it."""


def test_a_frame_that_covers_the_next_one_leaves_the_connection_as_it_is(fuzzed: Server) -> None:
    assert _talk(fuzzed, [COVERING]) == ""


def test_every_frame_gets_an_answer_or_the_end_of_its_connection(fuzzed: Server) -> None:
    def check(sent: list[bytes]) -> None:
        why = _talk(fuzzed, sent)
        assert not why, f"{why}\nafter the frames {sent}"

    explore(check, conversations(), 100)


@pytest.mark.parametrize("code", [1011, 1013, 3000])
def test_a_close_frame_is_answered_with_its_code(fuzzed: Server, code: int) -> None:
    assert not _talk(fuzzed, [frame_of(code.to_bytes(2, "big"), CLOSE)])


def _talk(server: Server, sent: list[bytes]) -> str:
    """Send frames and then a call; return what is wrong with what comes back until its answer or the end.

    The call may become a part of a frame whose length is wrong. So it is sent again after each ping of the server.
    """
    client = Socket(server.port, server.owner)
    with client.wire:
        for frame in sent:
            client.send(frame)
        client.send(_PROBE)
        while (frame := client.next_frame()) is not None:
            if frame.opcode == PING:
                client.send(frame_of(frame.payload, PONG) + _PROBE)
            if frame.opcode == CLOSE:
                code = int.from_bytes(frame.payload[:2], "big") if frame.payload else 1000
                # The server repeats the code of the client's close frame (RFC 6455, 5.5.1).
                is_right = code in NO_FAULT or 4000 <= code < 5000 or code == close_code(b"".join(sent))
                return "" if is_right else f"closed with {code}"
            if frame.opcode == TEXT and (why := _fault_of_frame(frame.payload)):
                return why
            if frame.opcode == TEXT and PROBE.encode() in frame.payload:
                return ""
    return ""


def _fault_of_frame(payload: bytes) -> str:
    wire = json.loads(payload)
    if isinstance(wire, dict) and wire.get("jsonrpc") == "2.0" and wire.get("method"):
        return ""  # the end of a stream, as a notification
    answers = wire if isinstance(wire, list) else [wire]
    return "" if answers and all(map(_is_reply, answers)) else f"no answer: {wire}"


def _is_reply(wire: object) -> bool:
    """Return whether it is a response, or an event of a stream, which has more members."""
    if not isinstance(wire, dict):
        return False
    members = {"jsonrpc", "id", "result", "error"}
    return is_answer({name: value for name, value in wire.items() if name in members})
