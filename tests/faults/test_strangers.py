"""A flood of wrong keys at a real server: what it leaves behind, and what the calls of others cost meanwhile."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.bystander import bystand
from tests.faults.clients import PATIENCE
from tests.faults.conftest import Start
from tests.faults.nodes import KEY, ROOT

pytestmark = pytest.mark.fault
SECONDS = 3.0
FAILURES = 100
"""The default of A2A_ADDRESS_FAILURES."""


def p99(times: dict[str, list[float]]) -> float:
    """Return the milliseconds within which 99 % of gets were answered."""
    gets = sorted(times["get"])
    return round(gets[int(0.99 * (len(gets) - 1))] * 1_000, 1)


def counted(minutes: list[dict[str, Any]]) -> int:
    """Return the number of refused calls."""
    return sum(minute["unauthenticated"] + minute["limited"] for minute in minutes)


async def test_a_flood_of_wrong_keys_leaves_counts_and_the_calls_of_others(
    start: Start, record_property: Callable[[str, object], None]
) -> None:
    node = await start(A2A_LOG_CALLS="0")  # as in production
    calm = await bystand(node, KEY, SECONDS)
    command = [sys.executable, "-m", "tests.faults.attackers", "guesses", str(node.port), str(SECONDS + 1)]
    attacker = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    await asyncio.sleep(0.5)
    flooded = await bystand(node, KEY, SECONDS)
    output, _ = await attacker.communicate()
    assert attacker.returncode == 0
    guesses = int(output)
    record_property("wrong keys a second", round(guesses / (SECONDS + 1)))
    record_property("p99 of gets in ms, without the flood and with it", (p99(calm), p99(flooded)))
    seen = ("a2a", "refusals", "--address", "127.0.0.1")
    async with asyncio.timeout(PATIENCE):  # The counts are written a second behind.
        while counted(minutes := await node.lines(*seen)) < guesses:  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.2)
    assert counted(minutes) == guesses
    looked_up = sum(minute["unauthenticated"] for minute in minutes)
    assert FAILURES <= looked_up <= 2 * FAILURES
    assert sum(minute["recorded"] for minute in minutes) <= 10 * len(minutes)
