"""Bytes on a connection to a real server: requests of HTTP and frames of WebSocket, as a caller may break them."""

import os
import re
import socket
import struct
import time
from base64 import b64encode
from contextlib import suppress
from typing import NamedTuple

from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from tests.conftest import PATIENCE
from tests.fuzz.asking import Answer, Hung, inflated
from tests.fuzz.calls import Call

_HEAD = re.compile(rb"HTTP/1\.1 (\d{3}) ")
TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
"""Opcodes of frames (RFC 6455, 5.2)."""


class Frame(NamedTuple):
    """A frame from the server."""

    opcode: int
    payload: bytes


def request_of(call: Call, key: str) -> bytes:
    """Return the bytes of a call, after which the connection ends."""
    fields = {"Host": "127.0.0.1", "Authorization": f"Bearer {key}", "Content-Length": str(len(call.body))}
    fields |= dict(call.headers) | {"Connection": "close"}
    lines = [f"{call.verb} {call.path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace") + call.body


def exchange(port: int, request: bytes, *, has_body: bool = True) -> bytes:
    """Send bytes, and return what comes back until the end of an answer or of the connection. Raises Hung."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as wire:
        received, deadline = bytearray(), time.monotonic() + PATIENCE
        with suppress(ConnectionError, BrokenPipeError):
            wire.sendall(request)
        try:
            while not _is_whole(received, has_body) and (piece := _receive(wire, deadline)):
                received += piece
        except TimeoutError:
            raise Hung(f"the connection is open after {PATIENCE:g} s, with {bytes(received)!r}") from None
    return bytes(received)


def _is_whole(content: bytes | bytearray, has_body: bool) -> bool:
    """Return whether this is the whole of one answer."""
    head, end, body = bytes(content).partition(b"\r\n\r\n")
    if not end or not (status := _HEAD.match(head)):
        return False
    fields = head.lower()
    if not has_body or status[1] in {b"204", b"304"}:
        return True
    if length := re.search(rb"\ncontent-length: *(\d+)", fields):
        return len(body) >= int(length[1])
    return b"\ntransfer-encoding: chunked" in fields and body.endswith(b"0\r\n\r\n")


def _receive(wire: socket.socket, deadline: float) -> bytes:
    """Return what comes next; nothing at the end of the connection. Raises TimeoutError after the deadline: a server
    that only sends signs of life keeps no test waiting."""
    wire.settimeout(max(0.001, deadline - time.monotonic()))
    try:
        return wire.recv(1 << 16)
    except ConnectionError:
        return b""


def first_answer(content: bytes) -> Answer | None:
    """Return the first answer in what came back; None if there is none."""
    head, _, rest = content.partition(b"\r\n\r\n")
    status = _HEAD.match(head)
    if status is None:
        return None
    pairs = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
    headers = {name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, _, value in pairs}
    if "transfer-encoding" in headers:
        content = _unchunked(rest)
    else:  # Behind it may be the answer to what the server took for another request.
        content = rest[: int(headers.get("content-length", len(rest)))]
    return Answer(int(status[1]), headers, inflated(headers, content))


def _unchunked(content: bytes) -> bytes:
    whole = b""
    while match := re.match(rb"([0-9a-fA-F]+)\r\n", content):
        size = int(match[1], 16)
        whole += content[match.end() : match.end() + size]
        content = content[match.end() + size + 2 :]
    return whole


class Socket:
    """A connection of WebSocket whose frames a test makes."""

    def __init__(self, port: int, key: str) -> None:
        self.wire = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.received, self.deadline = bytearray(), time.monotonic() + PATIENCE
        lines = (
            *("GET /ws HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade"),
            *(f"Authorization: Bearer {key}", "Sec-WebSocket-Version: 13"),
            *(f"Sec-WebSocket-Key: {b64encode(os.urandom(16)).decode()}", "", ""),
        )
        self.wire.sendall("\r\n".join(lines).encode())
        while b"\r\n\r\n" not in self.received and (piece := _receive(self.wire, self.deadline)):
            self.received += piece
        assert self.received.startswith(b"HTTP/1.1 101 "), bytes(self.received)
        del self.received[: self.received.index(b"\r\n\r\n") + 4]

    def send(self, content: bytes) -> None:
        with suppress(ConnectionError, BrokenPipeError):
            self.wire.sendall(content)

    def next_frame(self) -> Frame | None:
        """Return the next frame; None at the end of the connection. Raises Hung."""
        while (frame := self._first()) is None:
            try:
                piece = _receive(self.wire, self.deadline)
            except TimeoutError:
                raise Hung(f"the connection is open after {PATIENCE:g} s") from None
            if not piece:
                return None
            self.received += piece
        return frame

    def _first(self) -> Frame | None:
        data = self.received
        if len(data) < 2:
            return None
        size, start = data[1] & 0x7F, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(data) < 2 + width:
                return None
            size, start = int.from_bytes(data[2 : 2 + width], "big"), 2 + width
        if len(data) < start + size:
            return None
        frame = Frame(data[0] & 0x0F, bytes(data[start : start + size]))
        del data[: start + size]
        return frame


def frame_of(payload: bytes, opcode: int = TEXT) -> bytes:
    """Return a masked frame, as a client sends it. Its mask changes nothing."""
    size = len(payload)
    if size < 126:
        length = bytes([0x80 | size])
    else:
        length = b"\xfe" + struct.pack(">H", size) if size < 1 << 16 else b"\xff" + struct.pack(">Q", size)
    return bytes([0x80 | opcode]) + length + b"\0\0\0\0" + payload


def close_code(content: bytes) -> int | None:
    """Return the code in the first close frame of what a client sends; None if there is none before a broken frame."""
    reader = ServerProtocol(state=OPEN)
    reader.receive_data(content)
    return None if reader.close_rcvd is None else reader.close_rcvd.code
