"""The processes of isolated agents, as tests see them."""

import asyncio
import time
from pathlib import Path
from typing import Any

from tests.faults.clients import PATIENCE, Client

GRACE = 1.0
LONG_GRACE = 40.0
"""Longer than a busy machine takes for anything that is done at once, and shorter than the timeout of an agent."""


def data_of(task: dict[str, Any]) -> Any:
    return task["artifacts"][0]["parts"][0]["data"]


def is_alive(pid: int) -> bool:
    """Return whether the process is there, and not only its remains."""
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def wait_for_end(pid: int, seconds: float = PATIENCE) -> float:
    """Wait until the process has ended; return the seconds that took."""
    began = time.monotonic()
    async with asyncio.timeout(seconds):
        while is_alive(pid):  # noqa: ASYNC110  # no signal announces its end
            await asyncio.sleep(0.02)
    return time.monotonic() - began


async def process_of(caller: Client, task_id: str) -> int:
    """Return the process of the agent, once it has said so."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if (task := await caller.get(task_id)).get("artifacts"):
                return int(data_of(task)["pid"])
            await asyncio.sleep(0.02)


async def processes_of(caller: Client, task_id: str) -> list[int]:
    """Return the process of the agent and those that it has started."""
    await process_of(caller, task_id)
    return list(data_of(await caller.get(task_id))["pids"])
