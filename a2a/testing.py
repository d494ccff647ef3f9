"""Play an agent in a test: no server, no database, no network, and the time stands still.

from a2a.testing import play

def test_it_asks_for_a_name_and_greets():
    asked = play(hello, "")
    assert asked.question == "What is your name?"
    assert asked.answer("Ann").text == "Hello, Ann!"
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

from msgspec import UNSET, Struct

from a2a.acting import act_here
from a2a.agents import Agent, define, registry
from a2a.callers import Caller
from a2a.dialects.json.json_1_0 import encodable
from a2a.events import Event, MessageAdded, StatusChanged, TaskCreated, fold
from a2a.run import Action, Preferences, Reply, Run, Say, parts_of
from a2a.scribe import Scribe, ends_run
from a2a.states import INTERRUPTED, TaskState
from a2a.types import Json, Message, Part, Role, Status, Task

NOW = datetime(2000, 1, 1, tzinfo=UTC)
TESTER = Caller(name="tester", tenant="default", scopes=frozenset({"*"}))
"""Who calls where a test does not say it; it may do everything."""


class Played(Struct, frozen=True, kw_only=True):
    """The outcome of a message."""

    actions: tuple[Action, ...]
    """Everything that the agent yielded or returned, one by one."""
    task: Task
    """The task as its caller sees it afterwards: texts in pieces are whole."""
    forgotten: tuple[str, ...]
    """Sentences about actions that the agent made and never gave."""
    run: Run
    """The value that the agent was given."""

    @property
    def state(self) -> TaskState:
        """How the run ended: completed, rejected, input_required or auth_required."""
        return self.task.status.state

    @property
    def text(self) -> str:
        """The text of results and replies; different parts stand on lines of their own."""
        replies = [part for action in self.actions if isinstance(action, Reply) for part in action.parts]
        return _text((*self._results, *replies))

    @property
    def data(self) -> Any:
        """The value of the first result that is data; None if there is none."""
        return next((part.data for part in self._results if part.data is not UNSET), None)

    @property
    def question(self) -> str:
        """The text of the question that the agent ends with, or of its refusal; empty if it has none."""
        said = self.task.status.message
        return "" if said is None or self.state is TaskState.COMPLETED else said.text

    @property
    def statuses(self) -> tuple[str, ...]:
        """The text of each run.status."""
        return tuple(_text(action.parts) for action in self.actions if isinstance(action, Say))

    @property
    def _results(self) -> tuple[Part, ...]:
        return tuple(part for artifact in self.task.artifacts for part in artifact.parts)

    def answer(self, message: Any, *, caller: Caller | None = None) -> "Played":
        """Play the agent once more, with the answer to its question. Raises ValueError if it has not asked."""
        if self.state not in INTERRUPTED:
            raise ValueError(f"the agent has not asked: it ended as {self.state.value}")
        again = MessageAdded(message=_message(message, self.task), status=_status(TaskState.SUBMITTED))
        preferences = Preferences(
            accepts=self.run.accepts, extensions=self.run.extensions, caller=caller or self.run.caller
        )
        return _play(self.run.agent, fold(self.task, [again]), self.run.conversation, self.run.metadata, preferences, 1)


def play(
    function: Callable[..., Any], message: Any = "", *, caller: Caller = TESTER, conversation: Sequence[Message] = (),
    metadata: Json | None = None, accepts: Sequence[str] = (), extensions: Sequence[str] = (), attempt: int = 1,
) -> Played:  # fmt: skip
    """Let the agent act on a message, which may be text, data, bytes, a Part, a list of them, or a whole Message.

    Raises what the agent raises; a2a.mistakes.AgentMistake for a value that it may not give; and InvalidParams for
    inputs that do not fit its parameters. Timeouts, limits and isolation are a server's, and do not hold here.
    """
    agent = next((known for known in registry if known.function is function), None) or define(function, {})
    blank = Task(id="task", context_id="context", status=_status(TaskState.SUBMITTED))
    task = fold(blank, [MessageAdded(message=_message(message, blank))])
    preferences = Preferences(accepts=tuple(accepts), extensions=tuple(extensions), caller=caller)
    return _play(agent, task, tuple(conversation), metadata, preferences, attempt)


def _play(
    agent: Agent,
    task: Task,
    conversation: tuple[Message, ...],
    metadata: Json | None,
    preferences: Preferences,
    attempt: int,
) -> Played:
    asked = [message for message in task.history if message.role is Role.USER]
    run = Run(
        agent, task_id=task.id, context_id=task.context_id, message=asked[-1], attempt=attempt, history=task.history,
        conversation=conversation, metadata=metadata, preferences=preferences,
    )  # fmt: skip
    numbers = count(1)
    scribe = Scribe(task.id, task.context_id, len(asked), lambda: f"{len(asked)}-{next(numbers)}")
    actions: list[Action] = []
    events: list[Event] = [TaskCreated(task=task), StatusChanged(status=_status(TaskState.WORKING))]

    def give(action: Action) -> bool:
        event = scribe.event(action, NOW)
        encodable(event)
        actions.append(action)
        events.append(event)
        return ends_run(action)

    if not agent.blocks and _loop_runs():
        raise RuntimeError("play has an event loop of its own: in an async test, await asyncio.to_thread(play, ...)")
    act_here(run, give)
    if not (actions and ends_run(actions[-1])):
        events.append(scribe.status(TaskState.COMPLETED, NOW))
    forgotten = run.drafts.forgotten(agent.name)
    return Played(actions=tuple(actions), task=fold(None, events), forgotten=forgotten, run=run)


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _message(value: Any, task: Task) -> Message:
    """The value as the caller's next message to the task."""
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
