"""The agent that the public conformance kits and the official clients talk to: the prefix of the messageId says how it
behaves, as `scenarios/*.feature` of the kit asks.

    make conformance
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

from msgspec import Struct

from a2a.agents import agent
from a2a.run import Run
from a2a.types import Extension, Part

STREAMING_SECONDS = float(os.environ.get("TCK_STREAMING_TIMEOUT", "2"))
"""The kit's own setting: a resubscribable task lasts twice as long."""
DEFAULT = os.environ.get("A2A_CONFORMANCE_DEFAULT", "completed")
"""The final state of a task without a prefix: completed, or input-required where the 0.3 kit must find it open."""
EXTENSIONS = [
    Extension(uri=uri, required=required)
    for name, required in (("A2A_CONFORMANCE_EXTENSIONS", False), ("A2A_CONFORMANCE_REQUIRED", True))
    for uri in filter(None, os.environ.get(name, "").split(","))
]
"""The extensions on its card, and those that a caller must ask for, by comma: some cases need them."""
BEATS = 16
"""Signs of life of a resubscribable task."""


class Pause(Struct, frozen=True):
    """A step of a script: seconds in which nothing is said, so that what was said is an event of its own."""

    seconds: float


Script = Callable[[Run], tuple[Any, ...]]
FILE = Part(raw=b"tck", filename="output.txt", media_type="text/plain")
LINK = Part(url="https://example.com/output.txt", filename="output.txt", media_type="text/plain")


def streamed(*content: Any) -> Script:
    """Works, then gives an artifact."""
    return lambda run: (run.status("working"), run.artifact(*content, id="streamed", last=True))


def chunked(run: Run) -> tuple[Any, ...]:
    first, last = run.artifact("chunk-1 ", id="chunked"), run.artifact("chunk-2", id="chunked", last=True)
    return run.status("working"), first, Pause(0.3), last


def lasting(run: Run) -> tuple[Any, ...]:
    """Progress for twice the kit's timeout."""
    pause = Pause(2 * STREAMING_SECONDS / BEATS)
    return tuple(step for beat in range(BEATS) for step in (run.status(f"beat {beat + 1} of {BEATS}"), pause))


SCRIPTS: dict[str, Script] = {
    "tck-complete-task": lambda run: (run.reply("Hello from TCK"),),
    "tck-input-required": lambda run: (run.ask("What else?"),),
    "tck-reject-task": lambda run: (run.reject("rejected"),),
    "tck-message-response": lambda run: (run.reply("Direct message response"),),
    "tck-artifact-text": lambda run: (run.artifact("Generated text content", id="text"),),
    "tck-artifact-file": lambda run: (run.artifact(FILE, id="file"),),
    "tck-artifact-file-url": lambda run: (run.artifact(LINK, id="file"),),
    "tck-artifact-data": lambda run: (run.artifact({"key": "value", "count": 42}, id="data"),),
    "tck-stream-001": streamed("Stream hello from TCK"),
    "tck-stream-002": lambda run: (),
    "tck-stream-003": streamed("Stream task lifecycle"),
    "tck-stream-ordering-001": streamed("Ordered output"),
    "tck-stream-artifact-text": streamed("Streamed text content"),
    "tck-stream-artifact-file": streamed(FILE),
    "tck-stream-artifact-chunked": chunked,
    "test-resubscribe-message-id": lasting,
}
PREFIXES = sorted(SCRIPTS, key=len, reverse=True)
"""The longer first: tck-artifact-file-url begins with tck-artifact-file."""


def otherwise(run: Run) -> tuple[Any, ...]:
    if DEFAULT == "input-required":
        return (run.ask("What else?"),)
    return (run.reply(f"No script for {run.message.message_id}"),)


@agent(
    quick=lambda message: message.message_id.startswith("tck-message-response"),
    input_modes=["text/*", "application/json"],
    output_modes=["text/plain", "application/json"],
    extensions=EXTENSIONS,
)
async def conformance(run: Run) -> AsyncIterator[Any]:
    """Behaves as the conformance kits ask, by the prefix of the messageId."""
    prefix = next((prefix for prefix in PREFIXES if run.message.message_id.startswith(prefix)), None)
    for step in (SCRIPTS[prefix] if prefix else otherwise)(run):
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
        else:
            yield step
