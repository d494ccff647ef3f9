"""Agents of phases, to which messages of workflows go."""

from typing import Any

from a2a.agents import agent
from a2a.run import Run


@agent(phases=["specification"], skills=["specify"], attempts=3, listed=False)
async def specifier(run: Run) -> str:
    """Specifies what it is asked for."""
    return f"specification of {run.text}"


@agent(phases=["pseudocode", "architecture", "refinement", "completion"], attempts=3, listed=False)
async def builder(run: Run) -> str:
    """Says its phase, and what the phases before it have given."""
    results = [part.text for said in run.conversation if said.role == "agent" for part in said.parts if part.text]
    return f"{run.metadata['sparcPhase']} after {len(results)}"


@agent(phases=["refinement"], skills=["coder"], listed=False)
async def refuser(run: Run) -> Any:
    """Rejects whatever it is asked for."""
    return run.reject("no")
