"""A gate before the handling of calls, also of those in batches."""

import asyncio
from typing import Any

import pytest

from tasks_app.transports import receiving


class Gate(asyncio.Event):
    """Calls wait before it until it is set."""

    begun = 0
    """The number of calls that have come to it."""


def gate_before_calls(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Have calls wait from now on until the gate is set."""
    gate, reply = Gate(), receiving._reply

    async def late(*arguments: Any) -> Any:
        gate.begun += 1
        await gate.wait()
        return await reply(*arguments)

    monkeypatch.setattr(receiving, "_reply", late)
    return gate
