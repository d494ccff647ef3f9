"""``python -m tests.faults.attackers NAME PORT SECONDS``: a caller who means harm, as a process of its own, so that
what is measured beside it is the server. Loopback only; it ends by itself."""

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from tests.faults.nodes import KEY

PATHS = ("/admin/login/", "/static/x", "/nothing/here", "/jsonrpc", "/message:send")
MEGABYTE = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
NESTED = (
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":'
    + b"[" * 20
    + b"],[".join([b"[" * 20 + b"]" * 20] * 22_000)
    + b"]" * 20
    + b"}"
)

NICENESS = 10
"""The nice value: an attacker on another machine takes nothing from the processors of those who measure."""

Act = Callable[[int, float], None]


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def head(path: str, *fields: str, key: str = "") -> bytes:
    named = [f"Authorization: Bearer {key}"] if key else []
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: 127.0.0.1", *named, *fields, "", ""]).encode()


def call(method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def posted(body: bytes, key: str = "", *fields: str) -> bytes:
    named = ("Content-Type: application/json", f"Content-Length: {len(body)}", *fields)
    return head("/jsonrpc", *named, key=key) + body


def pour(port: int, ends: float, start: bytes, piece: bytes, most: int = 1_000_000_000) -> None:
    """Send pieces without end, on one connection after another."""
    while time.monotonic() < ends:
        with suppress(OSError), connected(port) as wire:
            wire.sendall(start)
            sent = 0
            while sent < most and time.monotonic() < ends:
                sent += wire.send(piece)


def ask(port: int, ends: float, body: bytes, key: str = "") -> None:
    """Send the same request again and again, and read each answer to its end, at which the server closes."""
    while time.monotonic() < ends:
        with suppress(OSError), connected(port) as wire:
            wire.sendall(posted(body, key, "Connection: close"))
            while wire.recv(1 << 20) and time.monotonic() < ends:
                pass


def hold(port: int, ends: float, request: bytes, number: int) -> None:
    """Keep so many connections on which a request was begun and nothing is read; open others for those that end."""
    wires: list[socket.socket] = []
    while time.monotonic() < ends:
        for wire in wires[:]:
            with suppress(BlockingIOError):
                if not wire.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                    wires.remove(wire)
                    wire.close()
        with suppress(OSError):
            while len(wires) < number and time.monotonic() < ends:
                wires.append(connected(port))
                wires[-1].sendall(request)
        time.sleep(0.2)


def stare(port: int, ends: float, request: bytes, number: int) -> None:
    """Ask for something large on so many connections, and never read."""
    wires = []
    for _ in range(number):
        wire = socket.socket()
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        wire.connect(("127.0.0.1", port))
        wire.sendall(request)
        wires.append(wire)
    time.sleep(max(0.0, ends - time.monotonic()))


def threads(*acts: Callable[[], None]) -> None:
    running = [threading.Thread(target=act, daemon=True) for act in acts]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def bodies(port: int, ends: float) -> None:
    """Bodies of a gigabyte to five paths."""
    starts = [head(path, "Content-Type: application/json", "Transfer-Encoding: chunked") for path in PATHS]
    threads(*(lambda start=start: pour(port, ends, start, MEGABYTE) for start in starts))  # type: ignore[misc]


def trailers(port: int, ends: float) -> None:
    start = head("/jsonrpc", "Content-Type: application/json", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n"
    threads(*[lambda: pour(port, ends, start, b"a:b\r\n" * 10_000)] * 2)


def heads(port: int, ends: float) -> None:
    """Heads that do not end, behind a stream that is open."""
    said = {"messageId": "", "role": "ROLE_USER", "parts": [{"data": {"seconds": 60}}]}
    stream = call("SendStreamingMessage", {"message": said, "metadata": {"agent": "sleeper"}})

    def begun() -> bytes:
        said["messageId"] = str(time.monotonic_ns())
        return posted(json.dumps(stream).encode(), KEY) + b"POST / HTTP/1.1\r\nHost: x\r\n"

    threads(*[lambda: pour(port, ends, begun(), b"X-Filler: " + b"y" * 8_000 + b"\r\n")] * 2)


def nested(port: int, ends: float) -> None:
    """A megabyte of nested JSON on 16 connections."""
    threads(*[lambda: ask(port, ends, NESTED)] * 16)


def endless(port: int, ends: float) -> None:
    """600 bodies that never end."""
    start = head("/jsonrpc", "Content-Type: application/json", "Content-Length: 998000")
    hold(port, ends, start + b" " * 900_000, 600)


def forms(port: int, ends: float) -> None:
    """600 forms that never end, to a page that needs no key."""
    hold(port, ends, head("/admin/login/", "Content-Length: 998000") + b" " * 500_000, 600)


def halves(port: int, ends: float) -> None:
    """400 heads that never end."""
    hold(port, ends, b"POST / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 30_000, 400)


def lists(port: int, ends: float) -> None:
    """With a key: batches of eight large lists, on four connections."""
    batch = [call("ListTasks", {"pageSize": 30, "includeArtifacts": True})] * 8
    threads(*[lambda: ask(port, ends, json.dumps(batch).encode(), KEY)] * 4)


def stares(port: int, ends: float) -> None:
    """With a key: 40 readers of large lists who read nothing."""
    wanted = json.dumps(call("ListTasks", {"pageSize": 30, "includeArtifacts": True})).encode()
    stare(port, ends, posted(wanted, KEY), 40)


def messages(port: int, ends: float) -> None:
    """With a key: 50 messages of 900 kB to a task at work, which is read again and again meanwhile."""

    def send(task: dict[str, str], part: dict[str, object]) -> bytes:
        said = {"messageId": str(time.monotonic_ns()), "role": "ROLE_USER", "parts": [part], **task}
        at_once = {"returnImmediately": True}
        params = {"message": said, "configuration": at_once, "metadata": {"agent": "sleeper"}}
        return posted(json.dumps(call("SendMessage", params)).encode(), KEY)

    with connected(port) as wire:
        wire.sendall(send({}, {"data": {"seconds": 60}}))
        answer = b""
        while b'"id":"' not in answer.partition(b'"task"')[2]:
            answer += wire.recv(1 << 16)
    task_id = answer.partition(b'"task"')[2].partition(b'"id":"')[2].partition(b'"')[0].decode()

    def talk() -> None:
        for _ in range(50):
            if time.monotonic() < ends:
                with suppress(OSError), connected(port) as wire:
                    wire.sendall(send({"taskId": task_id}, {"text": "x" * 900_000}))
                    wire.recv(1 << 16)

    wanted = json.dumps(call("GetTask", {"id": task_id})).encode()
    threads(talk, lambda: ask(port, ends, wanted, KEY))


def guesses(port: int, ends: float) -> None:
    """2,500 wrong keys a second on 25 connections that stay open, each key another one."""
    body, number = json.dumps(call("GetTask", {"id": "none"})).encode(), 0
    wires = [connected(port) for _ in range(25)]
    due = time.monotonic()
    while due < ends:
        due += 0.01
        for wire in wires:
            number += 1
            wire.sendall(posted(body, f"tdk_guess-{port}-{number}"))
        for wire in wires:
            read(wire)
        time.sleep(max(0.0, due - time.monotonic()))
    print(number)  # noqa: T201  # for the test


def refusals(port: int, ends: float) -> None:
    """Calls without a key on 100 connections that stay open. The next ones are sent when all are refused."""
    request = posted(json.dumps(call("GetTask", {"id": "none"})).encode())
    wires = [connected(port) for _ in range(100)]
    while time.monotonic() < ends:
        for wire in wires:
            wire.sendall(request)
        for wire in wires:
            read(wire)


def read(wire: socket.socket) -> None:
    """Read an answer to its end."""
    while not (answer := wire.recv(1 << 16)).endswith(b"}"):
        assert answer, "the server has closed the connection of a caller who reads"


ATTACKS: dict[str, Act] = {
    act.__name__: act
    for act in (bodies, trailers, heads, nested, endless, forms, halves, guesses, refusals, lists, stares, messages)
}

if __name__ == "__main__":
    os.nice(NICENESS)
    ATTACKS[sys.argv[1]](int(sys.argv[2]), time.monotonic() + float(sys.argv[3]))
