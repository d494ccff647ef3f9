"""Tickets among processes: one that a process issued opens one socket, in whichever process it is shown."""

import asyncio
import shutil
from pathlib import Path

import pytest
from websockets import InvalidStatus

from tests.faults.clients import client
from tests.faults.conftest import Start
from tests.faults.nodes import KEY, Node
from tests.transports.websocket.door import call, dialled, next_frame

pytestmark = pytest.mark.fault
ROUNDS, EACH = 3, 6


async def ticket_of(node: Node) -> str:
    async with client(node) as caller:
        answer = await caller.http.post(f"{node.base}/ws/ticket", headers={"Authorization": f"Bearer {KEY}"})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["ticket"])


async def opened(node: Node, ticket: str) -> int:
    """Return the status of a handshake, once a call is answered if it succeeded."""
    try:
        async with dialled(node.base, f"/ws?ticket={ticket}") as socket:
            await socket.send(call(1, "GetTask", {"id": "none"}))
            assert (await next_frame(socket))["error"]["code"] == -32001
    except InvalidStatus as error:
        return error.response.status_code
    return 101


async def race(nodes: tuple[Node, Node]) -> None:
    """Show one ticket to both processes at once, several times, and let each issue some of them."""
    for number in range(ROUNDS):
        ticket = await ticket_of(nodes[number % 2])
        statuses = await asyncio.gather(*(opened(node, ticket) for node in nodes * EACH))
        assert sorted(statuses) == [101, *[401] * (2 * EACH - 1)]
        for node in nodes:
            assert ticket not in node.log
            assert "Traceback" not in node.log


async def test_a_ticket_opens_one_socket_of_two_processes(pair: tuple[Node, Node]) -> None:
    await race(pair)


async def test_a_ticket_opens_one_socket_of_two_processes_on_a_file(start: Start, tmp_path: Path) -> None:
    """A folder has one process at a time, so the second one has a folder of its own, with the secret of the first."""
    first = await start()
    (tmp_path / "other").mkdir()
    shutil.copy(first.folder / "secret.key", tmp_path / "other")
    await race((first, await start("serve", "other", DATABASE_URL=f"sqlite:///{first.folder}/taskdesk.sqlite3")))
