"""Refusals of addresses with too many wrong keys, and of unknown keys of a flood, which are written without a call of
the application."""

import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import NamedTuple

import pytest

from tasks_app.callers.access import MANY_MISSES
from tests.faults.conftest import Start
from tests.faults.nodes import KEY, Node

pytestmark = pytest.mark.fault
CALL = b'{"jsonrpc":"2.0","id":%s,"method":"GetTask","params":{"id":"x"}}'
USUAL = "Origin: https://page.example"
"""A header with which a call goes the usual way, through the application."""
RECORDED = 10
"""Refusals of an address in a minute that go the usual way because they are recorded."""


class Answer(NamedTuple):
    """An answer without the parts that differ each time."""

    status: str
    headers: list[str]
    body: bytes


class Wire:
    """A connection on which requests are written as bytes."""

    def __init__(self, node: Node) -> None:
        self.socket = socket.create_connection(("127.0.0.1", node.port), timeout=60)
        self.stream = self.socket.makefile("rb")

    def write(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.socket.sendall(piece)
            if len(pieces) > 1:
                time.sleep(0.05)

    def read(self) -> Answer:
        status = self.stream.readline().decode().strip()
        headers = []
        while line := self.stream.readline().decode().strip():
            headers.append(re.sub("^(date|retry-after|x-request-id): .+-.+|^(date|retry-after): .*", r"\1\2", line))
        (length,) = (int(line.removeprefix("content-length: ")) for line in headers if line.startswith("content-l"))
        return Answer(status, headers, self.stream.read(length))

    def close(self) -> None:
        self.stream.close()
        self.socket.close()

    def ended(self) -> bool:
        return self.stream.read(1) == b""


def posted(body: bytes, *fields: str, key: str = "wrong", version: str = "1.1") -> bytes:
    lines = [f"POST /jsonrpc HTTP/{version}", "Host: here", f"Authorization: Bearer {key}", *fields]
    if not any(field.startswith("Content-Type") for field in fields):
        lines.append("Content-Type: application/json")
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


CALLS: list[tuple[bytes, tuple[str, ...]]] = [
    (CALL % b"1", ()),
    (CALL % b"1.0", ()),
    (CALL % b'"a b"', ("X-Request-ID: mine",)),
    (CALL % b"null", ("Content-Type: application/json; charset=utf-8",)),
    (CALL.replace(b'"id":%s,', b""), ()),
    (b"[" + CALL % b"1" + b"," + CALL % b"2" + b"]", ("X-API-Key: also-wrong",)),
    (CALL % b"1", ("Content-Encoding: identity",)),
    (CALL % b"1", ("Content-Type: text/plain",)),
    (b'{"jsonrpc":"1.0","id":7}', ()),
    (b"{", ()),
]


@pytest.fixture
def connect() -> Iterator[Callable[[Node], Wire]]:
    """Give a function that opens a connection."""
    with ExitStack() as stack:
        yield lambda node: stack.enter_context(closing(Wire(node)))


async def test_an_early_refusal_is_that_of_the_usual_way(start: Start, connect: Callable[[Node], Wire]) -> None:
    node = await start(A2A_ADDRESS_FAILURES="1", A2A_LOG_CALLS="no")
    wire = connect(node)
    wire.write(posted(CALL % b"1", key=KEY))
    assert wire.read().status == "HTTP/1.1 200 OK"
    for _ in range(RECORDED + 2):
        wire.write(posted(CALL % b"1"))
        wire.read()
    for body, fields in CALLS:
        wire.write(posted(body, USUAL, *fields))
        usual = wire.read()
        wire.write(posted(body, *fields))
        assert wire.read() == usual, body[:80]
        assert usual.status.startswith("HTTP/1.1 4")
    first = posted(CALL % b"1")
    wire.write(first + posted(CALL % b"2") + posted(CALL % b"3", key=KEY) + first[:30], first[30:-20], first[-20:])
    ids = [wire.read() for _ in range(4)]
    assert [answer.status.split()[1] for answer in ids] == ["429", "429", "200", "429"]
    assert [answer.body[answer.body.index(b'"id":') + 5 :][:1] for answer in ids] == [b"1", b"2", b"3", b"1"]
    wire.write(posted(CALL % b"1", "Connection: close"))
    assert "connection: close" in wire.read().headers
    assert wire.ended()
    large = connect(node)
    large.write(posted(CALL % b"1" + b" " * 20_000))
    assert large.stream.readline().split()[1] == b"429"
    old = connect(node)
    old.write(posted(CALL % b"1", version="1.0"))
    assert "connection: close" in old.read().headers
    assert old.ended()


async def test_an_unknown_key_of_a_flood_is_refused_as_ever(start: Start, connect: Callable[[Node], Wire]) -> None:
    node = await start(A2A_ADDRESS_FAILURES="0", A2A_LOG_CALLS="no")
    wire = connect(node)
    for number in range(MANY_MISSES + RECORDED):
        wire.write(posted(CALL % b"1", key=f"wrong-{number}"))
        wire.read()
    for body, fields in CALLS:
        wire.write(posted(body, USUAL, *fields))
        usual = wire.read()
        wire.write(posted(body, *fields))
        assert wire.read() == usual, body[:80]
        assert usual.status.startswith("HTTP/1.1 4")
    first = posted(CALL % b"1")
    wire.write(first + posted(CALL % b"2") + posted(CALL % b"3", key=KEY) + first[:30], first[30:-20], first[-20:])
    assert [wire.read().status.split()[1] for _ in range(4)] == ["401", "401", "200", "401"]
    left = connect(node)
    left.write(first)
    left.close()
    wire.write(posted(CALL % b"1", "Connection: close"))
    assert "connection: close" in wire.read().headers
    assert wire.ended()


async def test_a_large_body_without_a_key_is_refused_as_ever_while_it_arrives(
    start: Start, connect: Callable[[Node], Wire]
) -> None:
    node = await start(A2A_LOG_CALLS="no")
    lines = ["POST /jsonrpc HTTP/1.1", "Host: here", "Content-Type: application/json", "Content-Length: 900000"]
    answers = []
    for _ in range(2 * RECORDED):
        wire = connect(node)
        wire.write("\r\n".join([*lines, "", ""]).encode() + b" " * 20_000)
        answers.append(wire.read())
        wire.write(b" " * 20_000)
        wire.close()
    assert {answer.status.split()[1] for answer in answers} == {"401"}
    assert "connection: close" in answers[0].headers
    (answer,) = {(*sorted(answer.headers), answer.body) for answer in answers}
    assert len(answer) == len(answers[0].headers) + 1
