"""Agents of zones: one that reads the secret of its message, and those whose failures are results."""

import asyncio
from collections.abc import AsyncIterator

from a2a.agents import agent
from a2a.failures import Failure
from a2a.run import Run


@agent(listed=False)
async def keeps_token(run: Run) -> str:
    """Says how long its token is."""
    return f"{len(await run.secret('bot_token'))} characters, and {len(await run.secret('other'))} of another"


@agent(listed=False, failures_as_results=True)
async def reports(run: Run) -> AsyncIterator[str]:
    """Says that it begins, and fails with words."""
    yield "begun"
    raise Failure("no paper")


@agent(listed=False, failures_as_results=True, timeout=0.3)
async def reports_late(run: Run) -> None:
    """Takes too long."""
    await asyncio.sleep(60)
