"""Attacks on the edge of a real server: what they cost its memory, its disk and its other callers."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.attackers import ATTACKS, head
from tests.faults.clients import PATIENCE, Client, client, closed, envelope, message
from tests.faults.conftest import Start
from tests.faults.nodes import AGENTS, KEY, ROOT, Node

pytestmark = pytest.mark.fault
MEGABYTE = 1_000_000
SECONDS = {"long": 10.0, "short": 2.0}


class Cost(NamedTuple):
    """Measurements taken while something else went on."""

    memory: int
    """The most bytes of memory at any time."""
    spooled: int
    """The most bytes in files without a name."""
    stored: int
    """The bytes of the database and the log at the end."""
    calls: list[float]
    """Seconds that each call of another caller took, in order of size."""

    def at(self, part: float) -> float:
        return self.calls[int(part * (len(self.calls) - 1))] * 1_000


def spooled(node: Node) -> int:
    """Return bytes of temporary files without a name that the server has open."""
    total = 0
    for link in Path(f"/proc/{node.pid}/fd").iterdir():
        with suppress(OSError):
            if "(deleted)" in os.readlink(link):  # noqa: PTH115  # the target is no path
                total += link.stat().st_size
    return total


def stored(node: Node) -> int:
    """Return bytes of the files in the folder of the server, and of its log."""
    total = node.file.stat().st_size
    for file in node.folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


def descriptors(node: Node) -> int:
    return len(list(Path(f"/proc/{node.pid}/fd").iterdir()))


async def measured(node: Node, caller: Client, task_id: str, seconds: float) -> Cost:
    """Measure for so long what the server needs, and how fast it answers others."""
    ends = time.monotonic() + seconds
    memory = disk = 0
    calls: list[float] = []
    while time.monotonic() < ends:
        since = time.monotonic()
        await caller.get(task_id)
        calls.append(time.monotonic() - since)
        memory, disk = max(memory, node.rss()), max(disk, spooled(node))
        await asyncio.sleep(0.01)
    return Cost(memory, disk, stored(node), sorted(calls))


async def prepared(start: Start, caller_of: str, **settings: str) -> Node:
    """Return a node whose caller has, for attacks on lists, large tasks."""
    node = await start(**settings)
    if caller_of in {"lists", "stares"}:
        async with client(node) as caller:
            for _ in range(30):
                said = {"message": message({"text": "x" * 900_000}), "metadata": {"agent": "echo"}}
                await caller.result("SendMessage", said)
        assert await node.stop() == 0
        await node.start()  # A new process, without the memory that the tasks took.
    return node


async def attacked(start: Start, name: str, seconds: float) -> tuple[Cost, Cost]:
    """Return the measurements before the attack, and during it."""
    short = dict.fromkeys(("A2A_BODY_SECONDS", "A2A_HEADER_SECONDS", "A2A_WRITE_SECONDS"), "3")
    node = await prepared(start, name, **short, A2A_LOG_CALLS="0")  # as in production
    async with client(node) as caller:
        said = {"message": message({"text": "x"}), "metadata": {"agent": "echo"}}
        task_id = (await caller.result("SendMessage", said))["task"]["id"]
        await measured(node, caller, task_id, 1)  # warm
        idle = await measured(node, caller, task_id, max(1.0, seconds / 4))
        command = [sys.executable, "-m", "tests.faults.attackers", name, str(node.port), str(seconds)]
        with subprocess.Popen(command, cwd=ROOT) as attacker:  # noqa: ASYNC220  # it does not wait
            await asyncio.sleep(0.5)  # it starts
            during = await measured(node, caller, task_id, seconds)
            assert attacker.wait(PATIENCE) == 0
        await caller.get(task_id)
    print(  # noqa: T201  # what was measured
        f"\n{name:9} memory {idle.memory / MEGABYTE:.0f} -> {during.memory / MEGABYTE:.0f} MB, "
        f"spooled {during.spooled / MEGABYTE:.1f} MB, stored {(during.stored - idle.stored) / MEGABYTE:.1f} MB, "
        f"get p50 {idle.at(0.5):.1f} -> {during.at(0.5):.1f} ms, "
        f"p99 {idle.at(0.99):.1f} -> {during.at(0.99):.1f} ms"
    )
    return idle, during


@pytest.mark.parametrize("name", ["bodies", "trailers", "nested", "endless", "refusals"])
async def test_a_stranger_costs_neither_memory_nor_disk(start: Start, name: str) -> None:
    idle, during = await attacked(start, name, SECONDS["short"])
    assert during.memory - idle.memory < 50 * MEGABYTE
    assert during.spooled == 0
    assert during.stored - idle.stored < 10 * MEGABYTE


@pytest.mark.long
@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_costs_neither_memory_nor_disk_for_long(start: Start, name: str) -> None:
    idle, during = await attacked(start, name, SECONDS["long"])
    assert during.memory - idle.memory < 50 * MEGABYTE
    assert during.spooled == 0


# ----------------------------------------------------------------- silent readers


def asking(node: Node, body: bytes, *fields: str) -> socket.socket:
    """Return a connection on which something large was asked for, and next to nothing can be received unread."""
    wire = socket.socket()
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    wire.connect(("127.0.0.1", node.port))
    kind = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    wire.sendall(head("/jsonrpc", *kind, *fields, key=KEY) + body)
    return wire


@pytest.mark.slow
async def test_readers_who_stop_reading_are_cut(start: Start) -> None:
    """An answer and a stream are cut, also for a reader who takes a byte now and then, but not for a slow one."""
    node = await start(A2A_WRITE_SECONDS="8", A2A_HEADER_SECONDS="8")  # No slow reader stands still for longer.
    async with client(node) as caller:
        spoken = await caller.send("chatty", chunks=600, size=16_384)
        await caller.completed(1)
        said = {"message": message({"text": "x" * 900_000}), "metadata": {"agent": "echo"}}
        large = (await caller.result("SendMessage", said))["task"]["id"]
        wanted, followed = envelope("GetTask", {"id": large}), envelope("SubscribeToTask", {"id": spoken})
        wires = [asking(node, wanted) for _ in range(3)]
        wires += [asking(node, followed, "Last-Event-ID: 1") for _ in range(3)]
        reader, trickle, *_ = wires
        taken = 0
        async with asyncio.timeout(PATIENCE):
            while not all(map(closed, wires[1:])):
                with suppress(ConnectionError):
                    trickle.recv(1)
                taken += len(reader.recv(20_000)) if taken < 1_000_000 else 0
                await asyncio.sleep(0.1)
        while taken < 1_800_000 and (chunk := reader.recv(65_536)):
            taken += len(chunk)
        assert taken >= 1_800_000
        for wire in wires:
            wire.close()


FEW_DESCRIPTORS = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Becomes a program that has as many file descriptors as macOS gives one."""


async def test_agents_find_descriptors_beside_more_strangers_than_there_are(
    nodes: list[Node], tmp_path: Path, migrated_file: Path
) -> None:
    node = Node(tmp_path / "data", "run", **AGENTS, A2A_HEADER_SECONDS="600")
    nodes.append(node)
    shutil.copy(migrated_file, node.folder)
    node.command = [sys.executable, "-c", FEW_DESCRIPTORS, *node.command]
    await node.start()
    gate = tmp_path / "open"
    async with client(node) as caller:
        strangers = []
        for _ in range(400):
            wire = socket.create_connection(("127.0.0.1", node.port))
            wire.sendall(b"GET / HTTP/1.1\r\nHost: ")
            strangers.append(wire)
        tasks = [await caller.send("opens", until=str(gate)) for _ in range(40)]
        await caller.state(tasks[-1], "TASK_STATE_WORKING")
        gate.touch()
        for task_id in tasks:
            await caller.state(task_id, "TASK_STATE_COMPLETED")
    for wire in strangers:
        wire.close()


async def test_half_a_head_holds_nobody_up_when_descriptors_are_few(start: Start, tmp_path: Path) -> None:
    """More strangers than there are descriptors: those who ask are served, and the database opens."""
    node = await start(A2A_CONNECTIONS="40", A2A_HEADER_SECONDS="30")
    async with client(node) as caller:
        strangers = []
        for _ in range(120):
            wire = socket.create_connection(("127.0.0.1", node.port))
            wire.sendall(b"GET / HTTP/1.1\r\nHost: ")
            strangers.append(wire)
        for _ in range(5):
            await caller.result("SendMessage", {"message": message({"text": "x"}), "metadata": {"agent": "echo"}})
        assert descriptors(node) < 40 + 60
        for wire in strangers:
            wire.close()


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /jsonrpc HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n",
        20 * b"GET /static/admin/js/vendor/xregexp/xregexp.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=["without its body", "whose answers are not read"],
)
async def test_strangers_for_whom_the_server_waits_hold_nobody_up(start: Start, request_: bytes) -> None:
    """More strangers than connections. The server waits for them for as long as the test lasts."""
    node = await start(A2A_CONNECTIONS="16", A2A_BODY_SECONDS="600", A2A_WRITE_SECONDS="600")
    strangers = []
    for _ in range(20):
        wire = socket.socket()
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        wire.connect(("127.0.0.1", node.port))
        wire.sendall(request_)
        strangers.append(wire)
    async with client(node) as caller, asyncio.timeout(PATIENCE):
        while True:
            with suppress(Exception):  # A stranger whose request is being worked on is not displaced.
                await caller.result("ListTasks", {"pageSize": 1})
                break
            await asyncio.sleep(0.1)
    for wire in strangers:
        wire.close()


@pytest.mark.parametrize("field", ["Content-Length: 00", f"X: {'y' * 9_000}"], ids=["two zeros", "a long field"])
async def test_handshakes_that_are_malformed_hold_nobody_up(start: Start, field: str) -> None:
    """More strangers than there are connections: their handshakes are refused, and callers are served."""
    node = await start(A2A_CONNECTIONS="16")
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    handshake = ["GET /ws HTTP/1.1", "Host: x", *upgrade, "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==", field]
    strangers = []
    for _ in range(20):
        wire = socket.create_connection(("127.0.0.1", node.port), timeout=PATIENCE)
        wire.sendall("\r\n".join([*handshake, "", ""]).encode())
        assert wire.recv(12).startswith(b"HTTP/1.1 4")
        strangers.append(wire)
    async with client(node) as caller:
        await caller.result("SendMessage", {"message": message({"text": "x"}), "metadata": {"agent": "echo"}})
    for wire in strangers:
        while wire.recv(1_000):  # The server closes, although the client does not.
            pass
        wire.close()


async def test_when_all_connections_are_at_work_others_are_told_to_come_again(start: Start) -> None:
    node = await start(A2A_CONNECTIONS="16")
    async with client(node) as caller:
        busy = []
        body = envelope("SendMessage", {"message": message({"data": {"seconds": 300}})})
        for _ in range(16):
            wire = socket.create_connection(("127.0.0.1", node.port))
            kind = ("Content-Type: application/json", f"Content-Length: {len(body)}")
            wire.sendall(head("/agents/sleeper/jsonrpc", *kind, key=KEY) + body)
            busy.append(wire)
        await asyncio.sleep(0.5)  # Until all of them are at work.
        with socket.create_connection(("127.0.0.1", node.port), timeout=PATIENCE) as wire:
            answer = wire.recv(1_000)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in answer
        for wire in busy:
            wire.close()
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(Exception):
                    await caller.result("ListTasks", {"pageSize": 1})
                    break
                await asyncio.sleep(0.1)
