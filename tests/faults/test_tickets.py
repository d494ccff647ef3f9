"""Tickets among processes: one that a process issued opens one socket, in whichever process it is shown."""

import asyncio
import shutil
from pathlib import Path

import httpx
import pytest
from websockets import InvalidStatus

from tests.faults.clients import client
from tests.faults.conftest import Start
from tests.faults.nodes import Node
from tests.transports.websocket.door import call, dialled, next_frame

pytestmark = pytest.mark.fault
TICKETS, EACH = 3, 6
LIMIT = {"A2A_OWNER_TICKETS": str(TICKETS)}


async def asked(node: Node) -> httpx.Response:
    """Return the answer to a call for a ticket."""
    async with client(node) as caller:
        return await caller.http.post(f"{node.base}/ws/ticket")


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
    """Ask both processes for tickets at once, and show each ticket to both at once."""
    answers = await asyncio.gather(*(asked(node) for node in nodes * EACH))
    assert sorted(answer.status_code for answer in answers) == [200] * TICKETS + [429] * (2 * EACH - TICKETS)
    for ticket in [answer.json()["ticket"] for answer in answers if answer.status_code == 200]:
        statuses = await asyncio.gather(*(opened(node, ticket) for node in nodes * EACH))
        assert sorted(statuses) == [101, *[401] * (2 * EACH - 1)]
        assert ticket not in nodes[0].log + nodes[1].log
    assert "Traceback" not in nodes[0].log + nodes[1].log


async def test_a_ticket_opens_one_socket_of_two_processes(start: Start, postgres: str) -> None:
    settings = LIMIT | {"DATABASE_URL": postgres}
    await race((await start(**settings), await start("serve", **settings)))


async def test_a_ticket_opens_one_socket_of_two_processes_on_a_file(start: Start, tmp_path: Path) -> None:
    """A folder has one process at a time, so the second one has a folder of its own, with the secret of the first."""
    first = await start(**LIMIT)
    (tmp_path / "other").mkdir()
    shutil.copy(first.folder / "secret.key", tmp_path / "other")
    file = f"sqlite:///{first.folder}/taskdesk.sqlite3"
    await race((first, await start("serve", "other", DATABASE_URL=file, **LIMIT)))
