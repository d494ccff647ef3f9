"""Agents of phases, to which messages of workflows go."""

from collections.abc import AsyncIterator
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


@agent(listed=False)
async def sparc_researcher(run: Run) -> AsyncIterator[Any]:
    """Reports how it begins, and gives a file of tests."""
    yield run.status("Initiating TDD cycle: Red phase - writing failing tests")
    yield run.artifact("describe('Authentication Module', () => {});", id="test-001", name="authentication_tests.ts")


@agent(listed=False, quick=True)
async def sparc_adviser(run: Run) -> Any:
    """Answers with a message, and says what it took."""
    found = {"sparcPhase": run.metadata["sparcPhase"], "processingTime": 450, "resourcesUsed": ["parallel_analysis"]}
    return run.reply("SPARC specification analysis completed.", metadata=found)


@agent(phases=["refinement"], skills=["coder"], listed=False)
async def refuser(run: Run) -> Any:
    """Rejects whatever it is asked for."""
    return run.reject("no")
