"""Agents that use the memory of their owner."""

from a2a.agents import agent
from a2a.run import Run


@agent
async def remembers(run: Run) -> str:
    """Reads a note in the memory of its owner, and stores the message under its own name."""
    note = await run.memory.retrieve("note")
    await run.memory.store(run.agent.name, run.text)
    return f"{note.data['from']} said {run.text}"


@agent(quick=True)
async def remembers_quickly(run: Run) -> str:
    """Reads and stores as `remembers` does, within the call."""
    return await remembers(run)


@agent
def remembers_in_a_thread(run: Run) -> str:
    """Reads and stores as `remembers` does, and uses every other method too."""
    return remember_now(run)


def remember_now(run: Run) -> str:
    note = run.memory.retrieve_now("note")
    run.memory.store_now(run.agent.name, run.text)
    run.memory.store_now("other", 1, namespace="other", ttl=60)
    assert [one.key for one in run.memory.list_now(namespace="other").entries] == ["other"]
    assert [one.key for one in run.memory.search_now("in-a-thread").entries] == [run.agent.name]
    run.memory.delete_now("other", namespace="other")
    return f"{note.data['from']} said {run.text}"
