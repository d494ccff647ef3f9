"""The clients of the five systems call one server at once. No call fails that should not, and each task is the same in
every language."""

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.faults.conftest import Start, shell
from tests.faults.nodes import Node
from tests.faults.seed_clients import AGENT, Acp, Adr, Singer, Sparc, Vapora, Zone
from tests.seeds.acp.client import AcpClient
from tests.seeds.acp.conftest import SCOPES

pytestmark = pytest.mark.fault
SETTINGS = {"A2A_AGENT_MODULES": "tests.faults.sparc_agents", "A2A_DEFAULT_AGENT": AGENT, "A2A_OAUTH": "true"}
READ = 40
"""Tasks of each client that are read in the other languages: the newest."""
_CLIENT = """
import json
import pathlib
from tasks_app.callers import access
from tasks_app.oauth import clients
from tasks_app.operators.audit import COMMAND, Operator

wish = clients.NewClient(name="chorus", principal=access.DEVELOPER, scopes={scopes!r})
client, secret = clients.add(wish, Operator("tests", COMMAND))
pathlib.Path({file!r}).write_text(json.dumps([client.client_id, secret]))
"""


async def chorus(node: Node, folder: Path) -> list[Singer]:
    """Return the five clients, all of one owner."""
    file = folder / "client.json"
    code = _CLIENT.format(scopes=" ".join(SCOPES), file=str(file))
    await asyncio.to_thread(shell, node.folder, code, **node.settings)
    acp = AcpClient(node.base, *json.loads(file.read_text()), SCOPES)
    return [Acp(node.base, acp), Adr(node.base), Vapora(node.base), Zone(node.base), Sparc(node.base)]


def assert_same_everywhere(singers: list[Singer]) -> int:
    """Check the newest tasks of each client in each language that reads tasks; return the number of reads."""
    reads = 0
    for singer in singers:
        for task_id, text in list(singer.made.items())[-READ:]:
            for reader in singers:
                if reader.can_read:
                    assert reader.read(task_id) == ("completed", f"heard {text}"), (type(reader), type(singer))
                    reads += 1
    return reads


async def sung(node: Node, folder: Path, seconds: float) -> str:
    """Have all clients work for so long, and compare their tasks; return what was done in words."""
    singers = await chorus(node, folder)
    with ExitStack() as stack:
        for singer in singers:
            stack.enter_context(singer.stack)
        until = monotonic() + seconds
        await asyncio.gather(*(asyncio.to_thread(singer.sing, until) for singer in singers))
        reads = await asyncio.to_thread(assert_same_everywhere, singers)
    assert all(singer.made for singer in singers)
    tasks = [task_id for singer in singers for task_id in singer.made]
    assert len(tasks) == len(set(tasks))
    assert "Traceback" not in node.log
    assert " ERROR " not in node.log
    parts = [f"{type(singer).__name__} {singer.rounds} rounds, {len(singer.made)} tasks" for singer in singers]
    return f"{'; '.join(parts)}; {reads} reads in other languages"


async def test_five_systems_at_once_see_the_same_tasks(start: Start, tmp_path: Path) -> None:
    await sung(await start(**SETTINGS), tmp_path, 4)


@pytest.mark.long
async def test_five_systems_at_once_for_a_minute(
    start: Start, postgres: str, tmp_path: Path, record_property: Any
) -> None:
    record_property("in a minute", await sung(await start(DATABASE_URL=postgres, **SETTINGS), tmp_path, 60))
