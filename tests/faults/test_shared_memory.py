"""Two processes write to the memory of one owner at once: no write is lost or counted twice, and limits hold."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.faults.clients import Client, client
from tests.faults.conftest import Start
from tests.faults.nodes import Node

pytestmark = pytest.mark.fault
WRITERS, WRITES = 2, 10
"""Writers at each process, and the writes of each."""
ENTRIES, BYTES = 15, 60
"""The limits of an owner. Each value has four bytes, so both are reached by fifteen entries."""
LIMITS = {"A2A_OWNER_MEMORY_ENTRIES": str(ENTRIES), "A2A_OWNER_MEMORY_BYTES": str(BYTES)}
NAMESPACE = {"namespace": "sparc"}


async def increments(caller: Client) -> None:
    """Add one to the shared number so many times. A write of an older version is refused, and tried again."""
    done = 0
    while done < WRITES:
        entry = await caller.result("memory/retrieve", NAMESPACE | {"key": "number"})
        wish = {"key": "number", "data": entry["data"] + 1, "ifVersion": entry["version"]}
        answer = await caller.reply("memory/store", NAMESPACE | wish)
        if "result" in answer:
            assert answer["result"]["version"] == entry["version"] + 1
            done += 1
        else:
            assert answer["error"]["code"] == -32602, answer


async def overwrites(caller: Client) -> list[int]:
    """Write the shared key again and again; return the versions of the writes."""
    answers = [await caller.result("memory/store", NAMESPACE | {"key": "last", "data": 1}) for _ in range(WRITES)]
    return [answer["version"] for answer in answers]


async def fills(caller: Client, name: str) -> list[str]:
    """Store entries under keys of its own and under shared ones; return the keys that there was room for."""
    stored = []
    for number in range(WRITES):
        key = f"{name}-{number}" if number % 2 else f"shared-{number}"
        answer = await caller.reply("memory/store", NAMESPACE | {"key": key, "data": "ab"})
        if "result" in answer:
            stored.append(key)
        else:
            assert "at most: delete entries" in str(answer["error"]), answer
    return stored


async def deleted(caller: Client, key: str) -> int:
    """Return how many entries a deletion has removed."""
    answer = await caller.reply("memory/delete", NAMESPACE | {"key": key})
    assert "result" in answer or answer["error"]["code"] == -32001, answer
    return int("result" in answer)


async def keys(caller: Client) -> list[str]:
    page = await caller.result("memory/list", NAMESPACE | {"limit": 100})
    assert page["nextCursor"] == ""
    return [entry["key"] for entry in page["entries"]]


async def race(nodes: tuple[Node, Node]) -> None:
    """Write to one memory through both processes."""
    async with client(nodes[0]) as first, client(nodes[1]) as second:
        callers = [first, second] * WRITERS
        total = len(callers) * WRITES
        await first.result("memory/store", NAMESPACE | {"key": "number", "data": 0})
        await asyncio.gather(*map(increments, callers))
        number = await second.result("memory/retrieve", NAMESPACE | {"key": "number"})
        assert (number["data"], number["version"]) == (total, total + 1)

        versions = await asyncio.gather(*map(overwrites, callers))
        assert sorted(version for row in versions for version in row) == list(range(1, total + 1))
        for key in ("number", "last"):
            await first.result("memory/delete", NAMESPACE | {"key": key})

        stored = await asyncio.gather(*(fills(caller, f"own-{place}") for place, caller in enumerate(callers)))
        present = await keys(second)
        assert len(present) == ENTRIES
        assert set(present) == {key for row in stored for key in row}

        removed = await asyncio.gather(*(deleted(caller, key) for key in present for caller in (first, second)))
        assert sum(removed) == ENTRIES
        assert await keys(first) == []
        await asyncio.gather(*(fills(caller, f"again-{place}") for place, caller in enumerate(callers)))
        assert len(await keys(second)) == ENTRIES


@pytest.mark.requirement("SPARC-09")
async def test_two_processes_share_a_memory_without_a_lost_write(start: Start, postgres: str) -> None:
    settings = LIMITS | {"DATABASE_URL": postgres}
    await race((await start(**settings), await start("serve", **settings)))


@pytest.mark.long
@pytest.mark.requirement("SPARC-09")
async def test_two_processes_share_a_memory_on_a_file(start: Start, tmp_path: Path) -> None:
    """A folder has one process at a time, so the second one has a folder of its own, with the secret of the first."""
    first = await start(**LIMITS)
    (tmp_path / "other").mkdir()
    shutil.copy(first.folder / "secret.key", tmp_path / "other")
    file = f"sqlite:///{first.folder}/taskdesk.sqlite3"
    await race((first, await start("serve", "other", DATABASE_URL=file, **LIMITS)))
