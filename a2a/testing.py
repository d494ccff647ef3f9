"""Tests of agents without a server, a database, a network or a clock.

from a2a.testing import play

def test_it_asks_for_a_name_and_greets():
    first = play(hello, "")
    assert first.question == "What is your name?"
    assert first.answer("Ann").text == "Hello, Ann!"
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from typing import Any

from msgspec import UNSET, Struct

from a2a.acting import act_here
from a2a.actions import Action, Reply, Say, parts_of
from a2a.agents import Agent, define, registry
from a2a.callers import Caller
from a2a.dialects.json.json_1_0 import encoded_size
from a2a.events import Event, MessageAdded, StatusChanged, TaskCreated, fold
from a2a.memory import MemoryDoor
from a2a.money import micros_of
from a2a.play_memory import PlayMemory
from a2a.preferences import Preferences
from a2a.run import Run
from a2a.scribe import Scribe, ends_run
from a2a.spending import Spending
from a2a.states import INTERRUPTED, TaskState
from a2a.types import Json, Message, Part, Role, Status, Task

NOW = datetime(2000, 1, 1, tzinfo=UTC)
"""The time of every event."""
TESTER = Caller(name="tester", tenant="default", scopes=frozenset({"*"}))
"""The default caller, which has all scopes."""


class Rehearsal(Struct, frozen=True, kw_only=True):
    """One run of an agent in a test, after its end."""

    actions: tuple[Action, ...]
    """All actions that the agent yielded or returned, in order."""
    task: Task
    """The task after the run, as its caller sees it. The chunks of a text are one part."""
    warnings: tuple[str, ...]
    """A sentence for each source line that builds an action and does not yield it."""
    run: Run
    """The argument of the agent."""

    @property
    def state(self) -> TaskState:
        """The state of the task after the run: completed, rejected, input_required or auth_required."""
        return self.task.status.state

    @property
    def text(self) -> str:
        """The text of artifacts and replies, one part a line."""
        replies = [part for action in self.actions if isinstance(action, Reply) for part in action.parts]
        return _text((*self._results, *replies))

    @property
    def data(self) -> Any:
        """The value of the first data part in an artifact; None if there is none."""
        return next((part.data for part in self._results if part.data is not UNSET), None)

    @property
    def question(self) -> str:
        """The text of the question or the refusal that ends the run; empty if neither does."""
        message = self.task.status.message
        return "" if message is None or self.state is TaskState.COMPLETED else message.text

    @property
    def statuses(self) -> tuple[str, ...]:
        """The text of each progress report (`run.status`)."""
        return tuple(_text(action.parts) for action in self.actions if isinstance(action, Say))

    @property
    def _results(self) -> tuple[Part, ...]:
        return tuple(part for artifact in self.task.artifacts for part in artifact.parts)

    def answer(self, message: Any, *, caller: Caller | None = None) -> "Rehearsal":
        """Run the agent again, with the answer to its question. Raises ValueError if it has not asked one."""
        if self.state not in INTERRUPTED:
            raise ValueError(f"the agent has not asked: it ended as {self.state.value}")
        again = MessageAdded(message=_message(message, self.task), status=_status(TaskState.SUBMITTED))
        preferences = Preferences(
            accepts=self.run.accepts, extensions=self.run.extensions, caller=caller or self.run.caller
        )
        task, money = fold(self.task, [again]), Spending(self.run.spending.limit, self.run.spending.spent)
        memory = self.run.memory_door or PlayMemory()
        return _play(self.run.agent, task, self.run.conversation, self.run.metadata, preferences, 1, money, memory)


def play(
    function: Callable[..., Any],
    message: Any = "",
    *,
    caller: Caller = TESTER,
    conversation: Sequence[Message] = (),
    metadata: Json | None = None,
    accepts: Sequence[str] = (),
    extensions: Sequence[str] = (),
    attempt: int = 1,
    budget: str | float | Decimal | None = None,
    memory: PlayMemory | None = None,
) -> Rehearsal:
    """Run an agent with a message: text, data, bytes, a Part, a list of these, or a whole Message.

    The other arguments are the values of the Run (a2a/run.py). Raises all exceptions of the agent, a2a.mistakes.
    AgentMistake for an invalid yield, and InvalidParams for inputs of the wrong type. Timeouts, limits and isolation
    are the business of a server, and do not apply here.
    """
    agent = next((agent for agent in registry if agent.function is function), None) or define(function, {})
    blank = Task(id="task", context_id="context", status=_status(TaskState.SUBMITTED))
    task = fold(blank, [MessageAdded(message=_message(message, blank))])
    preferences = Preferences(accepts=tuple(accepts), extensions=tuple(extensions), caller=caller)
    spending = Spending(None if budget is None else micros_of(budget))
    return _play(agent, task, tuple(conversation), metadata, preferences, attempt, spending, memory or PlayMemory())


def _play(
    agent: Agent,
    task: Task,
    conversation: tuple[Message, ...],
    metadata: Json | None,
    preferences: Preferences,
    attempt: int,
    spending: Spending,
    memory: MemoryDoor,
) -> Rehearsal:
    messages = [message for message in task.history if message.role is Role.USER]
    run = Run(
        agent,
        task_id=task.id,
        context_id=task.context_id,
        message=messages[-1],
        attempt=attempt,
        history=task.history,
        artifacts=task.artifacts,
        conversation=conversation,
        metadata=metadata,
        preferences=preferences,
        spending=spending,
        memory=memory,
    )
    numbers = count(1)
    scribe = Scribe(task.id, task.context_id, lambda: f"{len(messages)}-{next(numbers)}", turn=len(messages))
    actions: list[Action] = []
    events: list[Event] = [TaskCreated(task=task), StatusChanged(status=_status(TaskState.WORKING))]

    def give(action: Action) -> bool:
        event = scribe.event(action, NOW)
        encoded_size(event)  # Raises WrongValue at the yield, as on a server.
        actions.append(action)
        events.append(event)
        return ends_run(action)

    if not agent.blocks and _loop_runs():
        raise RuntimeError("play has an event loop of its own: in an async test, await asyncio.to_thread(play, ...)")
    act_here(run, give)
    if not (actions and ends_run(actions[-1])):
        events.append(scribe.status(TaskState.COMPLETED, NOW))
    warnings = run.drafts.warnings(agent.name)
    return Rehearsal(actions=tuple(actions), task=fold(None, events), warnings=warnings, run=run)


def _loop_runs() -> bool:
    """Return whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _message(value: Any, task: Task) -> Message:
    """Return the value as the caller's next message to the task."""
    if isinstance(value, Message):
        return value
    parts = parts_of(tuple(value) if isinstance(value, list | tuple) else (value,))
    number = sum(message.role is Role.USER for message in task.history) + 1
    return Message(
        message_id=f"message-{number}", role=Role.USER, parts=parts, context_id=task.context_id, task_id=task.id
    )


def _status(state: TaskState) -> Status:
    return Status(state=state, timestamp=NOW)


def _text(parts: Sequence[Part]) -> str:
    return "\n".join(part.text for part in parts if part.text is not None)
