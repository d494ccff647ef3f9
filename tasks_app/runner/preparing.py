"""The preparation of a run: the values that its agent is given, from the task and its context."""

from collections.abc import Sequence

from django.conf import settings
from msgspec.structs import replace

from a2a.agents import Agent
from a2a.preferences import preferences_of
from a2a.run import Run
from a2a.spending import Spending
from a2a.types import Message, Task
from tasks_app.callers.access import owner_for_agents
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import TaskRead
from tasks_app.event_log.conversation import conversation_of
from tasks_app.files import run_files
from tasks_app.ids import own_context
from tasks_app.memory.runs import memory_of
from tasks_app.run_secrets import run_secrets


async def prepare_run(read: TaskRead, agent: Agent, task: Task, messages: Sequence[Message]) -> Run:
    """Return the argument of the agent. `messages` are those of the task's caller."""
    preferences = preferences_of(read.wants)
    if (sender := preferences.caller) is None:
        sender = await bridge.ask(DoSlowly(lambda: owner_for_agents(read.owner_id), read.owner_id))
        preferences = replace(preferences, caller=sender)
    return Run(
        agent,
        task_id=task.id,
        context_id=task.context_id,
        message=messages[-1],
        attempt=read.attempt,
        history=_history(task),
        artifacts=task.artifacts,
        conversation=await _conversation(read, task, len(messages), sender.agents),
        metadata=task.metadata,
        preferences=preferences,
        files=run_files,
        secrets=run_secrets,
        spending=Spending(read.limit, read.spent),
        memory=memory_of(read),
    )


async def _conversation(
    read: TaskRead, task: Task, messages: int, agents: frozenset[str] | None
) -> tuple[Message, ...]:
    """Return the messages of the context's other tasks. If `agents` is not None, only those of their tasks.

    A task with one message in a context of its own has none before it.
    """
    if messages == 1 and read.document.context_id == own_context(task.id):
        return ()
    item = DoSlowly(lambda: conversation_of(read.owner_id, task.context_id, task.id, agents), read.owner_id)
    return await bridge.ask(item, patience=settings.A2A_LEASE_SECONDS)


def _history(task: Task) -> tuple[Message, ...]:
    return (*task.history, task.status.message) if task.status.message else task.history
