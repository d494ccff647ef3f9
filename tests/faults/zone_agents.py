"""An agent of an execution zone for faults, which can be called again."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from a2a.agents import agent
from a2a.run import Run
from tests.faults.agents import note


@agent(attempts=20, backoff=0)
async def answers(run: Run) -> AsyncIterator[Any]:
    """Writes its call down in the file that the message names, and says which attempt it is; the first takes its time.

    Without a name of a file it answers at once.
    """
    if run.text.startswith("/"):
        note(run.text, run)
    yield f"attempt {run.attempt} "
    if run.text.startswith("/") and run.attempt == 1:
        await asyncio.sleep(60)
    yield "and ended"
